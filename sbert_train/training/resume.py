"""From which checkpoint a run goes on, if from any."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from accelerate.utils import broadcast_object_list
from transformers import TrainingArguments

from sbert_train.errors import ConfigError
from sbert_train.paths import expanded
from sbert_train.training.checkpoints import (
    STATE,
    Checkpoint,
    best_of,
    checkpoint_at,
    damage,
    list_checkpoints,
)
from sbert_train.training.run_folder import RunFolder

AUTO, NEVER = "auto", "never"


@dataclass(frozen=True)
class Start:
    """How a run is to start.

    Attributes:
        resume: auto: from the newest whole checkpoint of its folder, where there is one; never: from the beginning; or
            the path of a checkpoint, or of a folder of checkpoints, or of a run.
        overwrite: from the beginning, also in place of a run with another configuration.
        strict: a damaged checkpoint is an error, not passed over.
        allow_changes: keys that may have other values than in the checkpoint, those of `identity.CHANGEABLE`.
    """

    resume: str = AUTO
    overwrite: bool = False
    strict: bool = False
    allow_changes: tuple[str, ...] = field(default=())

    def how_to_go_on(self, folder: RunFolder) -> str:
        """What to do after an interruption; the same command may be one to begin anew."""
        if not list_checkpoints(folder.checkpoints):
            return "nothing was saved, and the run begins anew"
        if self.overwrite or self.resume != AUTO:
            return "give the command without --overwrite and --resume to go on"
        return "give the same command again to go on"


def agreed_checkpoint(
    folder: RunFolder, start: Start, config_text: str, args: TrainingArguments, say: Callable[[str], None]
) -> Checkpoint | None:
    """What the first process chooses, on all of them; arguments and errors as for `choose_checkpoint`."""
    chosen: list[Checkpoint | None] = [None]
    if args.process_index == 0:
        needs_best = bool(args.load_best_model_at_end)
        chosen = [choose_checkpoint(folder, start, config_text, needs_best=needs_best, say=say)]
    if args.world_size > 1:
        broadcast_object_list(chosen)
    return chosen[0]


def choose_checkpoint(
    folder: RunFolder, start: Start, config_text: str, *, needs_best: bool, say: Callable[[str], None]
) -> Checkpoint | None:
    """The checkpoint to go on from; None for a run from the beginning, which then may replace what is in its folder.

    Args:
        needs_best: whether the run ends with the best model, so that the checkpoint of it must be whole as well.
        say: told of each damaged checkpoint that is passed over.

    Raises:
        ConfigError: the folder is that of another run; or no checkpoint is whole; or, if `strict`, a newer one is not.
    """
    own = list_checkpoints(folder.checkpoints)
    if start.resume not in (AUTO, NEVER):
        return _at(expanded(start.resume), folder, own, start, config_text, needs_best, say)
    if not start.overwrite and (start.resume == NEVER or not own):
        folder.require_replaceable(config_text)
    if start.overwrite or start.resume == NEVER or not own:
        return None
    return _newest(own, start, needs_best, say)


def _at(
    path: Path,
    folder: RunFolder,
    own: list[Checkpoint],
    start: Start,
    config_text: str,
    needs_best: bool,
    say: Callable[[str], None],
) -> Checkpoint:
    """The checkpoint that --resume PATH names."""
    named = checkpoint_at(path.absolute())
    if named is None:
        found = next((one for one in map(list_checkpoints, (path, path / "checkpoints")) if one), None)
        if found is None:
            raise ConfigError(f"--resume {start.resume}: {_no_checkpoint(path, own)}")
        chosen = _newest(found, start, needs_best, say)
    elif wrong := _wrong_with(named, needs_best):
        raise ConfigError(
            f"--resume {path}: the checkpoint is damaged: {wrong}; name another one, or the folder that holds them "
            "for the newest that is whole"
        )
    else:
        chosen = named
    if chosen.path.resolve().parent != folder.checkpoints.resolve():
        if own and not start.overwrite:
            raise ConfigError(
                f"--resume {path}: {folder.checkpoints} holds checkpoints of a run of its own; choose another "
                "output_dir, or pass --overwrite to replace them"
            )
        if not start.overwrite:
            folder.require_replaceable(config_text)
        return chosen
    if start.overwrite:
        raise ConfigError(f"--resume {path}: --overwrite would remove it; leave --overwrite out")
    if named and (later := [one.name for one in own if one.step > named.step]):
        raise ConfigError(
            f"--resume {path}: {folder.checkpoints} holds newer ones ({', '.join(later)}); move them away, or choose "
            "another output_dir"
        )
    return chosen


def _no_checkpoint(path: Path, own: list[Checkpoint]) -> str:
    """What is wrong with a path of which none is found."""
    found = "holds none" if path.is_dir() else "is a file" if path.exists() else "there is no such folder"
    here = f"; this run has {', '.join(str(one.path) for one in own)}" if own else ""
    return f"expected auto, never, or a folder that is or holds checkpoints, but {found}{here}"


def _newest(
    found: list[Checkpoint], start: Start, needs_best: bool, say: Callable[[str], None]
) -> Checkpoint:
    """The newest that can be gone on from."""
    problems: list[str] = []
    for one in reversed(found):
        wrong = _wrong_with(one, needs_best)
        if wrong is None:
            for problem in problems:
                say(f"warning    passed over {problem}")
            return one
        problems.append(f"{one.path}: {wrong}")
        if start.strict:
            raise ConfigError(
                f"{problems[0]}; move it away, or leave --strict out to go on from an older one"
            )
    raise ConfigError(
        f"no checkpoint is whole ({'; '.join(problems)}); pass --resume never to start from the beginning"
    )


def _wrong_with(checkpoint: Checkpoint, needs_best: bool) -> str | None:
    """Why a run cannot go on from a checkpoint; None where it can."""
    wrong = damage(checkpoint)
    if wrong is not None:
        return wrong
    try:
        step = int(checkpoint.read_json(STATE)["global_step"])
    except (OSError, ValueError, KeyError, TypeError):
        step = -1
    best = best_of(checkpoint)
    if step != checkpoint.step:
        return "it was not written by a run: its trainer_state.json is none"
    if not needs_best or not best or best == checkpoint.step:
        return None
    at = checkpoint_at(checkpoint.path.parent / f"checkpoint-{best}")
    wrong = "it is gone" if at is None else damage(at)
    return None if wrong is None else f"the best model, that of checkpoint-{best}, is not whole: {wrong}"
