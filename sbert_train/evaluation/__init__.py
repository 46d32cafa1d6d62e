"""Embeddings -> figures: metrics, tasks, bootstrap intervals and the comparison of models."""
