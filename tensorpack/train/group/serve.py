"""What a process does that holds variables for others."""

import os
import time

from tensorpack.train.signals import SignalGuard, TrainingInterrupted
from tensorpack.utils import logger
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.stopping import Interrupted, StopToken

from .members import Members
from .peers import PeerLost, wait_for
from .table import FAILED, JOINED, LEFT, READY

_LOOK_SECONDS = 0.2
_OTHERS_SECONDS = 5.0  # for other parameter servers to end before the first one


def serve(cluster: Cluster, target: str, timeout: float, grace: float = 20.0) -> None:
    """Lets the server of this process work until the group has ended, and ends the process.

    The server itself works on threads of TensorFlow. Ctrl-C or SIGTERM asks the workers to end in
    order, and waits for them for `grace` seconds.

    Args:
      cluster: in which this process is a parameter server.

    Raises:
      SystemExit: with code 0, all workers have ended in order.
      TrainingInterrupted: a signal ended the group.
      PeerLost: a worker failed, and the others have ended.
    """
    logger.info(f"{cluster.name} at {cluster.address} runs in process {os.getpid()}.")
    token = StopToken()
    group = Members(cluster, target, timeout=timeout)
    with SignalGuard(token, grace=grace) as guard:
        group.join(lambda lost: None)
        try:
            _wait(group, token, guard)
            if cluster.index == 0:  # the others read in its table that all workers have ended
                rows = range(cluster.num_workers + 1, len(group.table))
                wait_for(
                    str,
                    lambda: all(group.table[index].state >= LEFT for index in rows),
                    limit=_OTHERS_SECONDS,
                )
        finally:
            group.leave(failed=False)
    reason = token.reason
    signum = reason.signum if isinstance(reason, Interrupted) else group.votes()
    if signum:
        raise TrainingInterrupted(signum)
    logger.info(f"{cluster.name} has nothing left to serve.")
    raise SystemExit(0)


def _wait(group: Members, token: StopToken, guard: SignalGuard) -> None:
    """Returns when all workers have ended; raises if one failed."""
    workers = range(group.cluster.num_workers)
    while not guard.skip_optional:
        time.sleep(_LOOK_SECONDS)
        if group.lost is not None:
            raise group.lost
        if isinstance(token.reason, Interrupted) and not group.row.vote:
            logger.info("Asked to end: the workers end first.")
            group.vote(token.reason.signum)
        if any(group.alive(index) for index in workers):
            continue
        states = [group.table[index].state for index in workers]
        if token.requested or all(state == LEFT for state in states):
            return
        silent = [index for index in workers if states[index] in (JOINED, READY)]
        if silent:
            raise PeerLost(f"{group.who(silent[0])} was killed, or does not answer any more.")
        if FAILED in states:
            raise group.failure_of(states.index(FAILED))
