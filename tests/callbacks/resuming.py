"""Runs that are killed at any place and resumed from the last state, to compare with one run."""

from tensorpack.callbacks import MonitorBase
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer
from tests.contracts.callback import assert_plain, frozen


class Killed(BaseException):
    """The process is gone: nobody is told."""


class Killer(MonitorBase):
    """Takes a snapshot in its n-th turn, and kills the run in a later one.

    Args:
      save: in which turn, counted from 0 in the first run; None for never.
      kill: in which; None for never.
    """

    def __init__(self, save=None, kill=None):
        self._save, self._kill = save, kill
        self.turn = -1
        self.snapshot = None

    def _trigger(self):
        self.turn += 1
        if self.turn == self._save:
            self.snapshot = self.trainer.take_snapshot()
        if self.turn == self._kill:
            raise Killed

    _trigger_step = _trigger

    def state_dict(self):
        return {"turn": self.turn}

    def load_state_dict(self, state):
        self.turn = state["turn"]


class ResumableTrainer(MiniTrainer):
    """A `MiniTrainer` that resumes from a snapshot, as the trainer does from a saved state."""

    def take_snapshot(self):
        states = self.callbacks.state_dict()
        assert_plain(states)
        hook, done = self.callbacks.unfinished_hook(True)
        return {
            "variables": self.sess.run({each.op.name: each for each in tf.global_variables()}),
            "states": frozen(states),
            "epoch": self.epoch_num,
            "local_step": self.local_step,
            "global_step": self.global_step,
            "hook": hook,
            "done": done,
        }

    def go(self, snapshot=None):
        """Runs to the end or until it is killed; returns whether it came to the end."""
        with self.open_session():
            try:
                self._go_on(snapshot) if snapshot else self._begin()
            except Killed:
                return False
            self.callbacks.after_train()
            return True

    def _begin(self):
        self.callbacks.before_train()
        for epoch in range(1, self.max_epoch + 1):
            self.run_epoch(epoch)

    def _go_on(self, snapshot):
        self.resumed = True
        for each in tf.global_variables():
            value = snapshot["variables"][each.op.name]
            self.sess.run(each.initializer, {each.initializer.inputs[1]: value})
        self.global_step, self.starting_epoch = snapshot["global_step"], snapshot["epoch"]
        self.callbacks.load_states(snapshot["states"], self.callbacks.names(), strictly=True)
        if snapshot["hook"] == "trigger_epoch":
            self.epoch_num, self.local_step = snapshot["epoch"], snapshot["local_step"]
            self.callbacks.before_train()
            self.callbacks.resume_hook("trigger_epoch", snapshot["done"])
        else:
            self.epoch_num = snapshot["epoch"] - 1
            self.callbacks.before_train()
            self._finish_epoch(snapshot)
        for epoch in range(snapshot["epoch"] + 1, self.max_epoch + 1):
            self.run_epoch(epoch)

    def _finish_epoch(self, snapshot):
        self.epoch_num, self.local_step = snapshot["epoch"], snapshot["local_step"]
        self.callbacks.before_epoch()
        self.callbacks.resume_hook(snapshot["hook"], snapshot["done"])
        while self.local_step + 1 < self.steps_per_epoch:
            self.step()
        self.callbacks.after_epoch()
        self.callbacks.trigger_epoch()
