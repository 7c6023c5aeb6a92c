"""Runs of callbacks without a real trainer, and what they have logged."""

import re
import types
from contextlib import contextmanager, suppress
from unittest import mock

from tensorpack.callbacks import Callback, Callbacks, MaintainStepCounter, Monitors, ObjAttrParam
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import TrainerContract
from tensorpack.tfutils.hooked_session import HookedSession
from tensorpack.utils import logger
from tensorpack.utils.stopping import StopToken


class MiniTrainer(TrainerContract):
    """Runs `train_op` `steps_per_epoch` times an epoch, in the default graph.

    The callbacks run behind a step counter, the monitors behind the callbacks, their group last.
    """

    def __init__(
        self,
        callbacks=(),
        monitors=(),
        train_op=(),
        steps_per_epoch=2,
        max_epoch=1,
        starting_epoch=1,
        init_step=0,
    ):
        self.steps_per_epoch = steps_per_epoch
        self.max_epoch = max_epoch
        self.starting_epoch = starting_epoch
        self.epoch_num = starting_epoch - 1
        self.local_step = -1
        self.global_step = init_step
        self.in_step = False
        self.graph = tf.get_default_graph()
        self.stop_token = StopToken()
        self.monitors = Monitors(monitors)
        self.train_op = train_op
        everyone = [MaintainStepCounter(), *callbacks, *monitors, self.monitors]
        self.callbacks = Callbacks(everyone)
        self.all_callbacks = self.callbacks.cbs
        self.callback_seconds = self.callbacks.step_seconds

    @property
    def steps_taken(self):
        return self.global_step - self.in_step

    @contextmanager
    def session(self):
        """As `open_session`; in the end, the callbacks are told that the run is over."""
        with self.open_session() as sess:
            try:
                yield sess
            finally:
                self.callbacks.after_train()

    @contextmanager
    def open_session(self):
        """Sets up and opens the session; the body may call any part of the run."""
        self.callbacks.setup_graph(self)
        init = [tf.global_variables_initializer(), tf.local_variables_initializer()]
        start = tf.assign(tf.train.get_global_step(), self.global_step).op
        with tf.Session() as sess:
            self.sess = sess
            hooks = self.callbacks.get_hooks()
            self.hooked_sess = HookedSession(sess, hooks, self.callbacks.run_along)
            self.graph.finalize()
            sess.run(init)
            sess.run(start)
            yield sess

    def train(self):
        with self.session():
            self.callbacks.before_train()
            for epoch in range(self.starting_epoch, self.max_epoch + 1):
                self.run_epoch(epoch)
        return self

    def run_epoch(self, epoch):
        self.callbacks.check_over()
        self.epoch_num, self.local_step = epoch, -1
        self.callbacks.before_epoch()
        for _ in range(self.steps_per_epoch):
            self.step()
        self.callbacks.after_epoch()
        self.callbacks.trigger_epoch()

    def step(self):
        self.local_step += 1
        self.global_step += 1
        self.in_step = True
        self.run_step()
        self.in_step = False
        self.callbacks.trigger_step()

    def run_step(self):
        self.hooked_sess.run(self.train_op)


def when(**actions):
    """A callback that calls functions, with itself, in the hooks of these names.

    The hooks around a run have more arguments, which the functions do not get.
    """
    callback = Callback()
    for hook, action in actions.items():
        setattr(callback, f"_{hook}", lambda *_, action=action: action(callback))
    return callback


@contextmanager
def log_directory(path):
    """Makes `path` the log directory for the time of a block."""
    with mock.patch.object(logger, "get_logger_dir", lambda: str(path)):
        yield str(path)


def shown_events(directory):
    """The events that TensorBoard shows of a directory: a START, but the first, leaves out those of
    its step on.
    """
    shown, started = [], False
    for path in sorted(directory.glob("*tfevents*")):
        with suppress(tf.errors.DataLossError):  # of a record that was cut off
            for event in tf.train.summary_iterator(str(path)):
                if event.session_log.status == tf.SessionLog.START:
                    shown = [e for e in shown if not started or e.step < event.step]
                    started = True
                shown.append(event)
    return shown


def shown_scalars(directory):
    return [
        (event.step, value.tag, value.simple_value)
        for event in shown_events(directory)
        for value in event.summary.value
    ]


def a_rate():
    """A hyper-parameter for setters, 0.5 at first."""
    return ObjAttrParam(types.SimpleNamespace(rate=0.5), "rate")


def resume_writer(writer, state, callback, **options):
    """Runs epoch 3, or as `options` say, with a writer that has its state of an earlier run."""
    options = {"starting_epoch": 3, "init_step": 4, "max_epoch": 3, **options}
    with tf.Graph().as_default():
        trainer = MiniTrainer([callback], [writer], **options)
        trainer.resumed = True
        with trainer.session():
            writer.load_state_dict(state)
            trainer.callbacks.before_train()
            for epoch in range(trainer.starting_epoch, trainer.max_epoch + 1):
                trainer.run_epoch(epoch)


def log_lines(capsys):
    """The lines logged since the last call, without time and place."""
    out = capsys.readouterr().out
    pattern = re.compile(r"^\[\d{4} \d\d:\d\d:\d\d @[^\]]*\] (?:(?:WRN|ERR) )?(.*)$")
    return [match.group(1) for match in map(pattern.match, out.splitlines()) if match]
