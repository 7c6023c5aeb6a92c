"""Groups of real processes over loopback, to send signals to some, or to break their network."""

import contextlib
import json
import signal
import time

import numpy as np

from tensorpack.launch import _hosts
from tensorpack.tfutils.checkpoint import load_checkpoint_vars
from tensorpack.utils.cluster import Cluster
from tests.harness import Child

MODULE = "tests.groups.program"


class Group:
    """Workers and parameter servers, copies of a process that has TensorFlow loaded. Nothing ends
    the others if one has failed. Leaving its context kills those that still run.

    Args:
      *plans: see `program`.
      absent: the names of processes that never come.
      believe: takes the cluster of a process and returns what that process takes for its cluster.
      namespaces: the names of network namespaces to run the processes in.

    Attributes:
      children: the `Child` of each process by name, such as "worker 0".
    """

    def __init__(
        self, zygote, *plans, workers=2, ps=0, absent=(), believe=lambda own: own, namespaces=None
    ):
        self._codes, self.children, self.addresses = {}, {}, {}
        for each in _hosts.on_this_machine(workers, ps):
            self.addresses[each.name] = each.address
            env = {"TF_CONFIG": believe(each).as_tf_config()}
            if namespaces is not None:
                env["TEST_NAMESPACE"] = namespaces[each.index]
            if each.name not in absent:
                options = {"zygote": zygote, "module": MODULE, "env": env}
                self.children[each.name] = Child(json.dumps(plans), **options)
        self.workers = [name for name in self.children if name.startswith("worker")]

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.kill()

    def wait_for(self, text):
        """Waits until all workers have printed a text."""
        for name in self.workers:
            self.children[name].wait_for(text, 60)

    def send(self, signum, *names):
        """Sends a signal to these processes, by default all workers."""
        for name in names or self.workers:
            if name not in self._codes:
                self.children[name].send(signum)

    def kill(self):
        """Kills all, and waits until they are gone."""
        self.send(signal.SIGKILL, *self.children)
        for name in self.children:
            with contextlib.suppress(AssertionError):
                self.end(10, name)

    def end(self, timeout, *names):
        """Waits so many seconds for the ends of these processes, by default all workers.

        Returns:
          their exit codes, -n after signal n. One that runs longer is killed, an AssertionError.
        """
        deadline = time.monotonic() + timeout
        for name in names or self.workers:
            if name not in self._codes:
                self._codes[name] = None
                left = max(0.1, deadline - time.monotonic())
                self._codes[name] = self.children[name].end(left)
        return [self._codes[name] for name in names or self.workers]

    @property
    def results(self):
        """For each worker what came of its plans."""
        lines = [self.children[name].output.splitlines() for name in self.workers]
        return [[json.loads(x[7:]) for x in each if x.startswith("RESULT ")] for each in lines]

    @property
    def outputs(self):
        """What all have printed, for the messages of assertions."""
        return "\n".join(f"--- {name}\n{child.output}" for name, child in self.children.items())


def check_saved(directory, one, other, step):
    """Checks that two runs have saved the same; returns what worker 1 has."""
    for end in "", "-worker1":
        paths = [f"{directory}/{name}{end}/model-{step}" for name in (one, other)]
        found, expected = map(load_checkpoint_vars, paths)
        assert set(found) == set(expected)
        for name in set(expected) - {"EMA/input_queue_size"}:
            np.testing.assert_array_equal(found[name], expected[name], name)
    return found


class Launched(Child):
    """The launcher, with a group; an interpreter of its own for each process."""

    def __init__(self, *plans, workers=2, ps=0):
        options = ["--workers", workers, "--ps", ps, "-m", MODULE, json.dumps(plans)]
        super().__init__("-m", "tensorpack.launch", *options)

    def pids(self):
        """The ids of the processes that it has started, by name."""
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            found = {}
            for pid in children.read().split():
                with open(f"/proc/{pid}/environ") as environ:
                    lines = [each.partition("=")[::2] for each in environ.read().split("\0")]
                found[Cluster.from_environment(dict(lines)).name] = int(pid)
            return found
