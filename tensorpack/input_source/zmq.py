"""An input from other processes and machines."""

from typing import Any, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import RemoteDataZMQ
from tensorpack.utils.argtools import accepts_old_keywords

from .enqueue import QueueInput
from .tf_dataset import TFDatasetInput


class ZMQInput(QueueInput):
    """The datapoints that one or several `send_dataflow_zmq` send: a `QueueInput` of a
    `RemoteDataZMQ`.

    The data is made elsewhere, so a resumed run takes what comes, with a warning, and
    `resume="must"` refuses. In the spelling of 2017 the first argument is named `endpoint`.

    Args:
      end_point: where the datapoints come to, such as `tcp://127.0.0.1:5555`. One that leaves the
        machine needs a key.
      hwm: how many datapoints of each sender may wait in the connection.
      bind: whether to bind to the address instead of connecting to it.
      options: more options of `RemoteDataZMQ`: `key`, `timeout`, `senders`, `max_errors`,
        `max_bytes`.
    """

    @accepts_old_keywords(endpoint="end_point")
    def __init__(self, end_point: str, hwm: int = 50, bind: bool = True, **options: Any) -> None:
        super().__init__(RemoteDataZMQ(end_point, hwm=hwm, bind=bind, **options))

    def to_dataset(self, input_signature: Sequence[tf.TensorSpec]) -> tf.data.Dataset:
        """Returns a dataset of what comes, instead of setting the source up.

        Args:
          input_signature: the dtype and shape of each component.
        """
        dataset = TFDatasetInput.dataflow_to_dataset(
            self.ds, [spec.dtype for spec in input_signature]
        )

        def with_shapes(*tensors: tf.Tensor) -> Any:
            for tensor, spec in zip(tensors, input_signature):
                tensor.set_shape(spec.shape)
            return tensors

        return dataset.map(with_shapes)
