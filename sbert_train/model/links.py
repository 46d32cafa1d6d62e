"""Links among the files of a model: what a model consists of lies in its own folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from sbert_train.errors import ModelError


def refuse_links_out(folder: Path) -> None:
    """Check that no link below a model's folder leads out of it: an unpacked archive must not read other files.

    The folder itself may be reached by a link. The Hub's cache keeps a file once, in `blobs/`, and links to it from the
    `snapshots/REVISION/` of each revision that has it: those links are the cache's own.

    Raises:
        ModelError: one does; the message names it.
    """
    roots = [folder.resolve(), *_blobs(folder.resolve())]
    for link in _links(folder):
        if not any(_leads_into(root, link) for root in roots):
            raise ModelError(
                f"{link} is a link out of the model's folder, which is not followed: put a copy of the file there"
            )


def _links(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        yield from (path for name in (*folders, *files) if (path := Path(place, name)).is_symlink())


def _leads_into(root: Path, link: Path) -> bool:
    try:
        return link.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a link to itself
        return False


def _blobs(folder: Path) -> Iterator[Path]:
    """`blobs/` of the repository in the Hub's cache that a resolved folder belongs to, if it does.

    As its path stands: were it a link itself, what it leads to would not lie below this path.
    """
    for place in (folder, *folder.parents):
        blobs = place.parent.parent / "blobs"
        if place.parent.name == "snapshots" and blobs.is_dir():
            yield blobs
