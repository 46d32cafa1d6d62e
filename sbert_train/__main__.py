"""python -m sbert_train: the command, for launchers such as torchrun that start a module."""

import os
import sys


def run() -> None:
    """Run the command, with no library taken from the working directory.

    `python -m` looks there first, so that a torch.py among somebody's data would stand in for the library. A checkout,
    where this package itself lies in the working directory, stays as it is.
    """
    found_here = __file__.startswith(sys.path[0] + os.sep)
    if not (sys.flags.safe_path or found_here):
        del sys.path[0]

    from sbert_train.cli import main

    main()


run()
