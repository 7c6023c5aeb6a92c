"""The newest state that all workers of a group have saved, from which they resume together."""

import os
from typing import Callable, List, Optional, Sequence

import numpy as np

from tensorpack.tfutils.checkpoint import CheckpointCorrupt, candidates, verify
from tensorpack.utils import logger
from tensorpack.utils.checkpoints import STATE
from tensorpack.utils.checkpoints.files import step_of

__all__ = ["common_step"]

_MOST = 64  # checkpoints that a worker tells of, the newest ones

Gather = Callable[[Sequence[float]], np.ndarray]


def common_step(directory: str, gather: Gather) -> Optional[int]:
    """Returns the step of the newest state that each worker has, whole, in its own directory.

    Args:
      directory: where this worker saves.
      gather: takes some numbers, and returns those of all workers, `[workers, numbers]`; all
        workers call it as often.

    Returns:
      None if the run begins anew: no worker has a state, or none has finished the first save.

    Raises:
      RuntimeError: there are states, but none that all have.
    """
    own = _saved_steps(directory)
    table = gather([*own, *[-1] * (_MOST - len(own))]).astype(int)
    steps = [set(row[row >= 0].tolist()) for row in table]
    for step in sorted(set.intersection(*steps), reverse=True):
        if gather([_is_whole(os.path.join(directory, f"model-{step}"))]).all():
            return step
        logger.warning(f"The state at step {step} is damaged at a worker, so it is skipped.")
    if len(set.union(*steps)) > 1:
        newest = [max(each, default=None) for each in steps]
        raise RuntimeError(
            f"The workers have saved no state in common; their newest ones are at the steps "
            f"{newest}. Start as many workers as before, each with its log directory; or start a "
            "new run, in another one, from the weights: TrainConfig(session_init=InitFrom(...))."
        )
    return None


def _saved_steps(directory: str) -> List[int]:
    prefixes = [each for each in candidates(directory) if os.path.exists(each + STATE)]
    steps = [step_of(os.path.basename(each)) for each in prefixes]
    return sorted({each for each in steps if each is not None})[-_MOST:]


def _is_whole(prefix: str) -> bool:
    try:
        verify(prefix)
    except (CheckpointCorrupt, OSError) as error:
        logger.warning(f"{prefix} cannot be used: {error}")
        return False
    return True
