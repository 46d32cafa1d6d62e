"""`sbert-train` as a worker of torchrun, of which the second is told to stop in its fourth step; all of them must.

torchrun … tests/training/stopped_worker.py fit --config FILE
"""

import os
import signal
from typing import Any

from sbert_train.cli import main
from sbert_train.training.trainer import SentenceTrainer

inner = SentenceTrainer.training_step


def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The step, told to stop on the second process while it is computed."""
    if self.state.global_step == 3 and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGTERM)
    return inner(self, *args, **kwargs)


if __name__ == "__main__":
    SentenceTrainer.training_step = training_step  # type: ignore[method-assign]
    main()
