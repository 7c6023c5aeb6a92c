"""A group of real processes over loopback, to send signals to some, or to break their network.

::

    def test_a_worker_that_is_killed(tmp_path, zygote):
        with Group("tests.groups.programs", tmp_path, workers=2, ps=1, zygote=zygote) as group:
            group.wait_for("step 3")  # of each worker
            group.kill("worker 1")
            assert group.end("worker 0", timeout=20) == 1
            assert "worker 1 (127.0.0.1:" in group["worker 0"].output

With the fixture `zygote` a process is a copy that has TensorFlow loaded and calls `main(*args)` of
the module; else it is a new interpreter, which runs `python -m module *args`. Its role is in both
`Cluster.from_environment()`.
"""

import contextlib
import dataclasses
import signal
import time

from tensorpack.launch import _hosts
from tests.harness import Child


class Group:
    """N workers and M parameter servers; leaving its context kills those that still run.

    Args:
      module: what each process runs.
      *args: of its `main`, or its command line.
      workers, ps: how many of each.
      zygote: see above.
      env: added to the environment of all.
      network: a `Network` to lead all connections through, which can be stalled or cut.
      namespaces: `Namespaces` to run the processes in; needs a zygote.
      believe: takes the cluster of a process and returns what that process takes for its cluster.
    """

    def __init__(
        self,
        module,
        *args,
        workers=2,
        ps=0,
        zygote=None,
        env=None,
        network=None,
        namespaces=None,
        believe=None,
    ):
        clusters = _hosts.on_this_machine(workers, ps)
        if namespaces is not None:
            module, args = namespaces.inside(module, args)
            clusters = [namespaces.cluster(each) for each in clusters]
        self._start = module, args, zygote, env or {}
        self._clusters = {each.name: each for each in clusters}
        self._network = network
        self._believe = believe or (lambda cluster: cluster)
        self._codes = {}
        self.children = {}

    def __enter__(self):
        try:
            for name in self._clusters:
                self.start(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info):
        for name, child in self.children.items():
            if name not in self._codes:
                child.send(signal.SIGCONT)
                child.process.kill()
        for name in self.children:
            with contextlib.suppress(AssertionError):
                self.end(name, timeout=10)

    def __getitem__(self, name):
        """The `Child` of a process, such as group["worker 0"]."""
        return self.children[name]

    @property
    def names(self):
        """The names of all processes: "worker 0", ..., "ps 0", ..."""
        return list(self._clusters)

    @property
    def workers(self):
        """The names of all workers."""
        return [name for name, each in self._clusters.items() if each.job == "worker"]

    def address(self, name):
        """Where a process listens."""
        return self._clusters[name].address

    def start(self, name):
        """Starts a process, also a second time after it has ended."""
        module, args, zygote, env = self._start
        env = {**env, "TF_CONFIG": self._seen_by(name).as_tf_config()}
        if zygote is None:
            self.children[name] = Child("-m", module, *args, env=env)
        else:
            self.children[name] = Child(*args, env=env, zygote=zygote, module=module)
        self._codes.pop(name, None)

    def _seen_by(self, name):
        """The cluster as a process knows it: others by the way through the network."""
        own = self._believe(self._clusters[name])
        if self._network is None:
            return own
        seen = {
            other: own.address if other == name else self._network.way(name, other, each.address)
            for other, each in self._clusters.items()
        }
        workers = tuple(seen[each] for each in seen if each.startswith("worker"))
        ps = tuple(seen[each] for each in seen if each.startswith("ps"))
        return dataclasses.replace(own, workers=workers, ps=ps)

    def wait_for(self, text, *names, timeout=60):
        """Waits until these processes, by default all workers, have printed a text."""
        deadline = time.monotonic() + timeout
        for name in names or self.workers:
            self[name].wait_for(text, max(0.1, deadline - time.monotonic()))

    def send(self, signum, *names):
        """Sends a signal to these processes, by default all workers."""
        for name in names or self.workers:
            self[name].send(signum)

    def kill(self, *names):
        """Kills processes, and waits until they are gone."""
        self.send(signal.SIGKILL, *names)
        for name in names:
            self.end(name, timeout=10)

    def end(self, name, timeout):
        """Waits for the end of a process; returns its exit code, -n after signal n.

        Raises:
          AssertionError: it runs longer, and was killed; with its output.
        """
        if name not in self._codes:
            self._codes[name] = None
            self._codes[name] = self[name].end(timeout)
        return self._codes[name]

    def end_all(self, timeout, *names):
        """The exit codes of these processes, by default all workers, within so many seconds."""
        deadline = time.monotonic() + timeout
        return [
            self.end(each, max(0.1, deadline - time.monotonic())) for each in names or self.workers
        ]

    @property
    def outputs(self):
        """What all have printed, for the messages of assertions."""
        return "\n".join(f"--- {name}\n{child.output}" for name, child in self.children.items())
