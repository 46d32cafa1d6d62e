"""Fixtures of the data room."""

from tests.hub import hub

__all__ = ["hub"]
