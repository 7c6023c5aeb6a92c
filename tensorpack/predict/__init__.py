"""Predictors: from arrays to arrays, with the graph that trains or with one of their own."""

from .base import OfflinePredictor, OnlinePredictor, PredictorBase
from .config import PredictConfig

__all__ = ["OfflinePredictor", "OnlinePredictor", "PredictConfig", "PredictorBase"]
