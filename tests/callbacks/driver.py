"""Runs of callbacks without a real trainer, and what they have logged."""

import re
import types

from tensorpack.callbacks import ObjAttrParam
from tensorpack.compat import tfv1 as tf
from tensorpack.testing.callback import MiniTrainer, log_directory, when

__all__ = ["MiniTrainer", "a_rate", "log_directory", "log_lines", "resume_writer", "when"]


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
