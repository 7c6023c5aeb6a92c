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
    """Returns the server of this process, which is started at the first call.

    Args:
      config: decides which devices and how many threads the server has, whatever the config of a
        session on it says; by default `get_default_sess_config()`.
    """
    if cluster in _started:
        return _started[cluster]
    hosts = {address.rpartition(":")[0] for each in cluster.as_dict().values() for address in each}
    remote = sorted(host for host in hosts if not is_loopback(host))
    if remote:
        logger.warning(
            f"{', '.join(remote)}: anyone who reaches the ports of this cluster can run any code "
            "in its processes. Keep them inside a closed network."
        )
    config = worker_config(cluster, config)
    try:
        server = tf.train.Server(
            tf.train.ClusterSpec(cluster.as_dict()),
            job_name=cluster.job,
            task_index=cluster.index,
            config=config,
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
    own = tf.ConfigProto()
    own.CopyFrom(get_default_sess_config() if config is None else config)
    own.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    if cluster.job == "worker":
        seen = [f"/job:worker/task:{cluster.index}"] + ["/job:ps"] * bool(cluster.ps)
        own.device_filters.extend(each for each in seen if each not in own.device_filters)
    return own
