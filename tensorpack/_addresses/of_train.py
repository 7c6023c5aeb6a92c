"""What `tensorpack.train.input_data` had in 0.2.0."""

from tensorpack.input_source import InputSource as InputData

__all__ = ["InputData"]
