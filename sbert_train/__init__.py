"""Fine-tune sentence-embedding bi-encoders from one YAML file."""

__version__ = "0.1.0"
