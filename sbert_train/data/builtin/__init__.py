"""The embedded data set `builtin:contrast`: where its shipped files are. Its generator is beside it (generate.py)."""

from pathlib import Path

CONTRAST_FILES: dict[str, Path] = {
    split: Path(__file__).with_name(f"{name}.csv")
    for split, name in {"train": "train", "dev": "dev", "validation": "dev", "test": "test"}.items()
}
