"""The server of a process in a cluster: TensorFlow's runtime, which the other processes reach.

It has no authentication and no encryption, and listens on all network interfaces of the machine,
whatever the addresses of the cluster are: run it in a network that is closed to others.
"""

from typing import Dict, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.utils import logger
from tensorpack.utils.cluster import Cluster, is_loopback

_started: Dict[Cluster, tf.train.Server] = {}  # TensorFlow cannot stop a server


def make_server(cluster: Cluster, config: Optional[tf.ConfigProto] = None) -> tf.train.Server:
    """Returns the server of this process, which is started at the first call. Its devices and
    threads are those of `config`, whatever that of a session on it says; see `worker_config`.
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
    """Returns a config for the server of a process and for the sessions on it, by default from
    `get_default_sess_config()`.

    A worker's session does not see the devices of the other workers, so it can be opened before
    they are there, and closed when they are gone.
    """
    result = tf.ConfigProto()
    result.CopyFrom(get_default_sess_config() if config is None else config)
    result.use_per_session_threads = False  # the threads of a server are for all of its sessions
    result.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    if cluster.job == "worker":
        seen = [f"/job:worker/task:{cluster.index}"] + ["/job:ps"] * bool(cluster.ps)
        result.device_filters.extend(name for name in seen if name not in result.device_filters)
    return result
