"""The cells of `tf.contrib.rnn` that had ops of their own, by those of `tf.nn.rnn_cell`.

Variables, their names and the results are the same, so checkpoints load. What `cell_clip` clips has
no gradient here.
"""

from typing import Any

from tensorpack.compat import tfv1 as tf


def LSTMBlockCell(num_units: int, forget_bias: float = 1.0, **kwargs: Any) -> Any:
    """Returns an `LSTMCell`; takes `cell_clip`, `use_peephole`, `dtype`, `reuse` and `name`."""
    kwargs = {"name": "lstm_cell", "forget_bias": forget_bias, **kwargs}
    return tf.nn.rnn_cell.LSTMCell(num_units, kwargs.pop("use_peephole", False), **kwargs)


class GRUBlockCellV2(tf.nn.rnn_cell.GRUCell):
    """A `GRUCell`; `cell_size` is an older name of `num_units`."""

    def __init__(self, num_units: Any = None, cell_size: Any = None, **kwargs: Any) -> None:
        super().__init__(num_units or cell_size, **{"name": "gru_cell", **kwargs})


class GRUBlockCell(GRUBlockCellV2):
    """The same, with older names of its variables."""

    def add_weight(self, name: str, *args: Any, **kwargs: Any) -> Any:
        kind, _, part = name.rpartition("/")
        name = f"{part[0].replace('k', 'w')}_{'ru' if kind == 'gates' else 'c'}"
        return super().add_weight(name, *args, **kwargs)
