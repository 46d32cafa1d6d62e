"""The story of a run with several seeds: each is a run of its own, then their figures beside each other."""

import gc
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from accelerate.utils import broadcast_object_list

from sbert_train.config import RunConfig, dump_config
from sbert_train.errors import ConfigError, Interrupted
from sbert_train.paths import expanded
from sbert_train.reporting.seeds import Series, series_of
from sbert_train.training.arguments import training_arguments
from sbert_train.training.checkpoints import list_checkpoints
from sbert_train.training.everything_wrong import everything_wrong_told
from sbert_train.training.finished_runs import read_run
from sbert_train.training.fit import fit
from sbert_train.training.identity import FILE as IDENTITY_FILE
from sbert_train.training.identity import digest_of_rows
from sbert_train.training.lock import FILE as LOCK
from sbert_train.training.lock import locked
from sbert_train.training.prepare import load
from sbert_train.training.resume import AUTO, NEVER
from sbert_train.training.run_folder import CARD, RunFolder, write_json

FILE = "seeds.json"
_FINISHED = ", finished, so it is not trained again"


@dataclass(frozen=True)
class SeriesResult:
    """What the runs of several seeds leave behind."""

    root: Path
    base: str
    """The base model, as the configuration names it."""
    series: Series | None
    """Their figures, in the first process; None in others, which report nothing."""


def fit_seeds(
    config: RunConfig,
    seeds: Sequence[int],
    *,
    resume: str = AUTO,
    overwrite: bool = False,
    strict: bool = False,
    allow_changes: Sequence[str] = (),
    say: Callable[[str], None] = print,
    started: float | None = None,
) -> SeriesResult:
    """Fine-tune an encoder once with each seed, in output_dir/seed-N, and write output_dir/seeds.json.

    A series that was interrupted goes on: a seed that is finished is not trained again, if its configuration and, as
    far as a checkpoint tells them, its rows are those of now. Data order, new weights and dropout follow from the seed.

    Args:
        seeds: two or more, all different; their runs are made in this order.
        resume: auto or never, as for `fit`; with never every seed is trained from the beginning.
        overwrite, strict, allow_changes, say, started: as for `fit`, for each of the runs.

    Raises:
        SbertTrainError: as for `fit`; or the folder holds something else than a series.
        Interrupted: the process was told to stop.
    """
    if resume not in (AUTO, NEVER):
        raise ConfigError(
            f"--resume {resume}: a checkpoint is of one run, and --seeds makes several; each goes on by itself with "
            "--resume auto"
        )
    whole = _Series(config, tuple(seeds))
    whole.require_fitting(overwrite=overwrite)
    with everything_wrong_told(config.for_seed(seeds[0])):
        args = training_arguments(config.for_seed(seeds[0]))
    first = args.process_index == 0
    with locked(whole.root) if first else nullcontext():
        done: list[frozenset[int]] = [frozenset()]
        if first and resume == AUTO and not overwrite:
            done = [whole.finished()]
        if args.world_size > 1:
            broadcast_object_list(done)
        if first and len(done[0]) < len(seeds):
            (whole.root / FILE).unlink(missing_ok=True)
        for seed in seeds:
            if first:
                say(f"seed       {whole.place_of(seed)}{_FINISHED if seed in done[0] else ''}")
            if seed in done[0]:
                continue
            try:
                fit(
                    whole.runs[seed],
                    resume=resume,
                    overwrite=overwrite,
                    strict=strict,
                    allow_changes=allow_changes,
                    say=say,
                    started=started,
                )
            except Interrupted as stopped:
                raise Interrupted(stopped.signal, f"seed {seed}: {stopped}") from stopped
            started = None  # the next one begins now
            gc.collect()  # what a run leaves in cycles would be in the memory of the next
        series = whole.read(greater_is_better=args.greater_is_better is not False) if first else None
        if series is not None:
            write_json(whole.root / FILE, series.to_json())
    return SeriesResult(whole.root, whole.base, series)


@dataclass(frozen=True)
class _Series:
    """A configuration and its seeds."""

    config: RunConfig
    seeds: tuple[int, ...]

    @cached_property
    def runs(self) -> dict[int, RunConfig]:
        return {seed: self.config.for_seed(seed) for seed in self.seeds}

    @property
    def root(self) -> Path:
        return expanded(self.config.output_dir)

    @property
    def base(self) -> str:
        return str(self.config.as_written(("model", "base"), self.config.model.base))

    def place_of(self, seed: int) -> str:
        """Which of the series a seed is, and where its run is made, as the configuration names it."""
        folder = self.runs[seed].as_written(("output_dir",), self.runs[seed].output_dir)
        return f"{seed} of {', '.join(map(str, self.seeds))}: {folder}"

    def folder(self, seed: int) -> RunFolder:
        return RunFolder(expanded(self.runs[seed].output_dir))

    def require_fitting(self, *, overwrite: bool) -> None:
        """Check that these runs may be made here, before the first is.

        Raises:
            ConfigError: there is nothing to compare them by; the file names a seed, too; the folder holds something
                else; or that of a seed is the run of another configuration.
        """
        for name in ("seed", "data_seed"):
            if name in self.config.train:
                raise ConfigError(f"train.{name}: leave it out, as --seeds gives each run its own")
        if not self.config.data.eval:
            raise ConfigError("data.eval: --seeds compares runs by their figures; add an eval set")
        self._require_ours()
        for seed in self.seeds:
            folder = self.folder(seed)
            folder.require_ours()
            # Where there are checkpoints, `fit` tells each difference, and which may be allowed.
            if not overwrite and not list_checkpoints(folder.checkpoints):
                folder.require_replaceable(dump_config(self.runs[seed]))

    def _require_ours(self) -> None:
        if not self.root.is_dir():
            return  # the folder of a seed tells what is wrong
        for path in self.root.iterdir():
            if path.name in ("config.yaml", "environment.json", "report.json", "checkpoints", "model"):
                raise ConfigError(
                    f"output_dir: {self.root} holds a run; --seeds makes one run for each seed below output_dir, so "
                    "choose another folder"
                )
            is_seed = path.name.removeprefix("seed-").isdecimal() and path.is_dir()
            is_ours = path.name in (FILE, LOCK) or path.name.endswith(".partial")
            if not is_seed and not is_ours:
                raise ConfigError(
                    f"output_dir: {self.root} holds {path.name}, which is not of a series of seeds; choose another "
                    "folder"
                )

    def finished(self) -> frozenset[int]:
        """The seeds of which the run is there as this configuration and its data would make it."""
        return frozenset(seed for seed in self.seeds if self._is_finished(seed))

    def _is_finished(self, seed: int) -> bool:
        folder = self.folder(seed)
        if not (folder.report.is_file() and (folder.model / CARD).is_file() and folder.config.is_file()):
            return False
        if folder.config.read_text(encoding="utf-8") != dump_config(self.runs[seed]):
            return False
        checkpoints = list_checkpoints(folder.checkpoints)
        if not checkpoints:
            return True
        try:
            found = checkpoints[-1].read_json(IDENTITY_FILE)["data"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return bool(found == self.data)

    @cached_property
    def data(self) -> dict[str, str]:
        """The sha256 of the rows of each set, under the names that a checkpoint has for them."""
        train = {f"train {one.name}": digest_of_rows(load(one).rows) for one in self.config.data.train}
        return train | {f"eval {one.name}": digest_of_rows(load(one).rows) for one in self.config.data.eval}

    def read(self, *, greater_is_better: bool) -> Series:
        """What the finished runs report."""
        runs = {seed: read_run(f"seed-{seed}", self.folder(seed).root) for seed in self.seeds}
        return series_of(runs, greater_is_better=greater_is_better)
