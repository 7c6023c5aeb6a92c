"""The cells of `tf.contrib.rnn` that had ops of their own, by those of `tf.nn.rnn_cell`.

Variables, their names and the results are the same, so checkpoints load. What `cell_clip` clips has
no gradient here.
"""

from typing import Any, Optional

from tensorpack.compat import tfv1 as tf

__all__ = ["GRUBlockCell", "GRUBlockCellV2", "LSTMBlockCell"]

_cells: Any = tf.nn.rnn_cell


class LSTMBlockCell(_cells.LSTMCell):
    """An LSTM; `num_units` units, `forget_bias` is added to what opens the forget gate."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: Optional[float] = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: Optional[bool] = None,
        name: str = "lstm_cell",
    ) -> None:
        given = {"forget_bias": forget_bias, "cell_clip": cell_clip, "reuse": reuse}
        super().__init__(num_units, use_peephole, dtype=dtype, name=name, **given)


class GRUBlockCellV2(_cells.GRUCell):
    """A GRU of `num_units` units; `cell_size` is an older name of that."""

    def __init__(
        self,
        num_units: Optional[int] = None,
        cell_size: Optional[int] = None,
        reuse: Optional[bool] = None,
        name: str = "gru_cell",
    ) -> None:
        super().__init__(cell_size if num_units is None else num_units, reuse=reuse, name=name)


class GRUBlockCell(GRUBlockCellV2):
    """The same, with its older names of variables."""

    _NAMES = {"gates/kernel": "w_ru", "gates/bias": "b_ru", "candidate/kernel": "w_c"}

    def add_weight(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return super().add_weight(self._NAMES.get(name, "b_c"), *args, **kwargs)
