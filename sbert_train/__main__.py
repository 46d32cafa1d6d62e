"""python -m sbert_train: the command, for launchers such as torchrun that start a module."""

from sbert_train.cli import main

main()
