"""A model for others to use: written elsewhere, read again in a fresh process, compared."""

from sbert_train.export.exporters import EXPORTERS, export_model

__all__ = ["EXPORTERS", "export_model"]
