"""Side-by-side measurements with sentence-transformers; not part of the package, and not in its wheel."""
