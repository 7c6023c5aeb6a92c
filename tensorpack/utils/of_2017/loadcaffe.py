"""Names for models of Caffe, which scripts import and call in some of their modes only."""

from typing import Any

__all__ = ["get_caffe_pb", "load_caffe"]


def load_caffe(*args: Any, **kwargs: Any) -> Any:
    """Raises an ImportError, which says what to do instead."""
    raise ImportError(
        "Models of Caffe cannot be read here. Convert the weights to npz where Caffe is installed, "
        "and load them by SmartInit('weights.npz')."
    )


get_caffe_pb = load_caffe
