"""The server of a process in a cluster: TensorFlow's runtime, which the other processes reach.

It has no authentication and no encryption, and listens on all network interfaces of the machine,
whatever the addresses of the cluster are: run it in a network that is closed to others.
"""

import time
from typing import Any, Callable, Dict, Optional, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.utils import logger
from tensorpack.utils.cluster import Cluster, is_loopback, trouble_at

_CONNECT_SECONDS, _LOOK_SECONDS, _REPORT_SECONDS = 1.0, 0.05, 10.0
_started: Dict[Cluster, tf.train.Server] = {}  # TensorFlow cannot stop a server


def make_server(cluster: Cluster, config: Optional[tf.ConfigProto] = None) -> tf.train.Server:
    """Returns the server of this process, which is started at the first call.

    Args:
      config: decides which devices and how many threads the server has, whatever the config of a
        session on it says; by default `get_default_sess_config()`.
    """
    if cluster in _started:
        return _started[cluster]
    hosts = {name.rpartition(":")[0] for name in (*cluster.workers, *cluster.ps)}
    remote = sorted(host for host in hosts if not is_loopback(host))
    if remote:
        logger.warning(
            f"{', '.join(remote)}: anyone who reaches the ports of this cluster can run any code "
            "in its processes. Keep them inside a closed network."
        )
    try:
        server = tf.train.Server(
            cluster.as_dict(), cluster.job, cluster.index, None, worker_config(cluster, config)
        )
    except (tf.errors.OpError, RuntimeError) as error:
        raise RuntimeError(
            f"{cluster.name} cannot take its address {cluster.address}: {error}. Is another "
            "process there already, or is the address that of another machine?"
        ) from error
    _started[cluster] = server
    logger.info(f"This is {cluster.name} of {cluster.num_workers}, at {cluster.address}.")
    return server


def worker_config(cluster: Cluster, config: Optional[tf.ConfigProto] = None) -> tf.ConfigProto:
    """Returns a config for the server of a process and for the sessions on it.

    A worker's session sees its own devices and those of the parameter servers, not those of the
    other workers: so it can be opened before they are there, and closed when they are gone.

    Args:
      config: what to begin with, not changed; by default `get_default_sess_config()`.
    """
    result = tf.ConfigProto()
    result.CopyFrom(get_default_sess_config() if config is None else config)
    result.use_per_session_threads = False  # the threads of a server are for all of its sessions
    result.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    if cluster.job == "worker":
        seen = [f"/job:worker/task:{cluster.index}"] + ["/job:ps"] * bool(cluster.ps)
        result.device_filters.extend(name for name in seen if name not in result.device_filters)
    return result


class Gathering:
    """Tells all workers the numbers of all before the training, by variables on one process.

    Args:
      target: of sessions on the server of this process.
      key: a number that is the same on all workers, and of this run only.
      timeout: seconds to wait for the others, who are named in the log meanwhile.
      check_stop: called while it waits; may raise.
    """

    def __init__(
        self,
        target: str,
        cluster: Cluster,
        key: int,
        timeout: float,
        check_stop: Callable[[], None],
    ) -> None:
        self.target, self._cluster, self._name = target, cluster, f"tensorpack_gather{key}"
        self._timeout, self._check_stop = timeout, check_stop
        self._host = "/job:ps/task:0" if cluster.ps else "/job:worker/task:0"
        self._times = 0

    def wait_for_servers(self) -> None:
        """Blocks until all processes of the cluster listen; RuntimeError as `gather`."""
        names = {
            address: f"{job} {index} at {address}"
            for job, addresses in self._cluster.as_dict().items()
            for index, address in enumerate(addresses)
        }
        seconds = _CONNECT_SECONDS
        self._wait(lambda: [name for at, name in names.items() if trouble_at(at, seconds)])

    def gather(self, values: Sequence[float]) -> np.ndarray:
        """Returns the numbers of all workers, float64 `[workers, numbers]`, when all have called
        it. Each must call it as often, with as many.

        Raises:
          RuntimeError: one of them did not in time.
        """
        self._times += 1
        workers, name = self._cluster.workers, f"{self._name}_{self._times}_"
        with tf.Graph().as_default() as graph, tf.device(f"{self._host}/device:CPU:0"):
            rows = [shared_variable(name + worker, tf.float64, [len(values)]) for worker in workers]
            row = tf.constant(values, tf.float64)
            give = tf.raw_ops.AssignVariableOp(resource=rows[self._cluster.index], value=row)
            known = [tf.raw_ops.VarIsInitializedOp(resource=row) for row in rows]
            table = [tf.raw_ops.ReadVariableOp(resource=row, dtype=tf.float64) for row in rows]
        me = f"/job:worker/task:{self._cluster.index}"
        config = tf.ConfigProto(device_filters=[self._host, me])
        with tf.Session(self.target, graph, config) as session:
            session.run(give)
            self._wait(
                lambda: [
                    f"worker {index} at {workers[index]}"
                    for index, is_known in enumerate(session.run(known))
                    if not is_known
                ]
            )
            return np.array(session.run(table))

    def _wait(self, missing: Callable[[], Sequence[str]]) -> None:
        start = reported = time.monotonic()
        for names in iter(missing, []):
            self._check_stop()
            now = time.monotonic()
            if now - start > self._timeout:
                raise RuntimeError(
                    f"{', '.join(names)} did not come within {now - start:.0f} seconds. Start all "
                    "processes of the cluster, with the same addresses, and look at the log of "
                    "this one."
                )
            if now - reported > _REPORT_SECONDS:
                reported = now
                logger.info(f"Waiting for {', '.join(names)} ...")
            time.sleep(_LOOK_SECONDS)


def shared_variable(name: str, dtype: tf.DType, shape: Any) -> tf.Tensor:
    """Returns the handle of the variable that has this name in all sessions on its device."""
    return tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name)
