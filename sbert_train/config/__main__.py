"""`python -m sbert_train.config` prints the reference page."""

from sbert_train.config.reference import reference_markdown

if __name__ == "__main__":
    print(reference_markdown(), end="")
