"""`tensorpack.graph_builder.predictor_factory` of older versions; see `tensorpack.predict`."""

from tensorpack.predict.factory import PredictorFactory

__all__ = ["PredictorFactory"]
