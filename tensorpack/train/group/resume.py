"""The newest state that all workers of a group have saved, from which they resume together."""

import glob
import os
from typing import Any, Callable, Optional, Sequence

import numpy as np

from tensorpack.tfutils.checkpoint import CheckpointCorrupt, verify
from tensorpack.train.resume import RunState, state_directory, state_saver_of
from tensorpack.utils import logger
from tensorpack.utils.checkpoints.files import step_of
from tensorpack.utils.checkpoints.find import STATE, candidates

_MOST = 64  # checkpoints that a worker tells of, the newest ones

Gather = Callable[[Sequence[float]], np.ndarray]


def agree_on_state(config: Any, state: RunState, gather: Gather) -> None:
    """Finds what the workers of a group resume from, before anything is built: sets the step of
    `state`, or the policy of this worker's `TrainConfig` to "never" if there is nothing.

    The first `ModelSaver` runs on each worker: all save the state of their run, and what of the
    variables is theirs, see `variables_to_save`.
    """
    saver = state_saver_of(config.callbacks)
    if saver is not None:
        saver.chief_only = False
        if saver.checkpoint_dir:
            saver.checkpoint_dir = logger.dir_of_process(saver.checkpoint_dir)
    directory = state_directory(config.callbacks)
    if config.resume == "never" or directory is None:  # the run says that it needs one
        return
    if config.resume not in ("auto", "must"):
        raise ValueError(
            f'The workers of a group resume with "auto" or "must", each in its own log directory, '
            f"got resume={config.resume!r}."
        )
    step = common_step(directory, gather)
    if step is None and config.resume == "must":
        raise FileNotFoundError(
            f'There is no state of all workers in {directory}, and resume="must" needs one.'
        )
    state.step = step
    config.resume = "never" if step is None else config.resume


def common_step(directory: str, gather: Gather) -> Optional[int]:
    """Returns the step of the newest state that each worker has, whole, in its own directory. None
    for a run from the start: no worker has a state, or they were ended in the first save.

    Args:
      gather: takes some numbers, and returns those of all workers, `[workers, numbers]`.

    Raises:
      RuntimeError: there are states, but none that all have, and whole.
    """
    prefixes = [prefix for prefix in candidates(directory) if os.path.exists(prefix + STATE)]
    named = {step_of(os.path.basename(prefix)) for prefix in prefixes}
    saved = sorted(step for step in named if step is not None)[-_MOST:]
    # Who has no state, but the graph that a saver writes before the first step, lost nothing.
    trained = bool(saved or glob.glob(os.path.join(glob.escape(directory), "graph-*.meta")))
    table = gather([trained, *saved, *[-1] * (_MOST - len(saved))]).astype(int)
    steps = [set(row[row >= 0].tolist()) for row in table[:, 1:]]
    common = set.intersection(*steps)
    for step in sorted(common, reverse=True):
        if gather([_is_whole(os.path.join(directory, f"model-{step}"))]).all():
            return step
        logger.warning(f"The state at step {step} is damaged at a worker, so it is skipped.")
    if common or len(set.union(*steps)) > 1 or (any(steps) and not table[:, 0].all()):
        newest = [max(saved_at, default=None) for saved_at in steps]
        raise RuntimeError(
            f"The workers have no whole state in common; their newest ones are at the steps "
            f"{newest}. This one has looked in {directory}. Start as many workers as before, each "
            "with its log directory; or start a new run, in another one, from the weights: "
            "TrainConfig(session_init=InitFrom(...))."
        )
    return None


def _is_whole(prefix: str) -> bool:
    try:
        verify(prefix)
    except (CheckpointCorrupt, OSError) as error:
        logger.warning(f"{prefix} cannot be used: {error}")
        return False
    return True
