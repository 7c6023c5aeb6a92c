"""Statistics of the outputs of a model over a whole data set; an `InferenceRunner` feeds them."""

from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np

from tensorpack.tfutils.common import get_op_tensor_name
from tensorpack.utils.checks import as_names
from tensorpack.utils.stats import BinaryStatistics, RatioCounter

from .base import Callback


class Inferencer(Callback):
    """Makes scalars of what a model computes for each datapoint. One validation is this::

        before_inference()
        for each datapoint: on_fetches(results)    # the values of get_fetches()
        after_inference()                          # returns the scalars by their names

    Subclasses override the methods with a leading underscore: `_get_fetches`, `_on_fetches`,
    `_after_inference`, and `_before_inference`, which forgets the validation before. In the
    spelling of 2017 the first two are `_get_output_tensors` and `_datapoint`; the defaults call
    them.

    It is a callback too: `_setup_graph`, `_before_train`, `_after_train` and the state are used as
    in any other one. It is not triggered.

    Attributes:
      batch_size: in `_on_fetches`, how many examples the datapoint has: the first dimension, if all
        inputs of the model have the same; otherwise 1.
    """

    batch_size = 1

    def before_inference(self) -> None:
        """Called before each validation."""
        self._before_inference()

    def _before_inference(self) -> None:
        """Override to begin again."""

    def get_fetches(self) -> List[str]:
        """Returns the names of the tensors that it needs, as the model names them."""
        return as_names(self, "what _get_fetches() returns", self._get_fetches())

    def _get_fetches(self) -> Sequence[str]:
        """Override to return the names of tensors of the model."""
        return self._get_output_tensors()

    def _get_output_tensors(self) -> Sequence[str]:
        """The 2017 spelling of `_get_fetches`."""
        raise NotImplementedError(f"{type(self).__name__} must override _get_fetches().")

    def on_fetches(self, results: List[Any]) -> None:
        """Called for each datapoint, with the values of `get_fetches`."""
        self._on_fetches(results)

    def _on_fetches(self, results: List[Any]) -> None:
        """Override to take in the values for one datapoint."""
        self._datapoint(results)

    def _datapoint(self, output: List[Any]) -> None:
        """The 2017 spelling of `_on_fetches`."""
        raise NotImplementedError(f"{type(self).__name__} must override _on_fetches().")

    def after_inference(self) -> Optional[Dict[str, Any]]:
        """Called after each validation; returns scalars by their names, or None."""
        return self._after_inference()

    def _after_inference(self) -> Optional[Dict[str, Any]]:
        """Override to return a dict of scalars; they are put into `trainer.monitors`."""
        return None

    def get_output_tensors(self) -> List[str]:
        """The 2017 spelling of `get_fetches`."""
        return self.get_fetches()

    def datapoint(self, output: List[Any]) -> None:
        """The 2017 spelling of `on_fetches`."""
        self.on_fetches(output)


class ScalarStats(Inferencer):
    """Averages scalar tensors, such as the cost, over the examples of the data set.

    The value of a datapoint counts as often as the datapoint has examples, so that the mean is
    right also if the last batch is smaller.

    Args:
      names: of one tensor, or of several.
      prefix: the scalar is called `{prefix}_{name}`; with an empty one, as the tensor.
      weighted: False to let each datapoint count once, whatever its size.
    """

    def __init__(
        self, names: Union[str, Sequence[str]], prefix: str = "validation", weighted: bool = True
    ) -> None:
        self.names = as_names(self, "names", names)
        self.prefix = prefix
        self._weighted = weighted
        self._before_inference()

    def _before_inference(self) -> None:
        self._means = [RatioCounter() for _ in self.names]

    def _get_fetches(self) -> List[str]:
        return self.names

    def _on_fetches(self, results: List[Any]) -> None:
        weight = self.batch_size if self._weighted else 1
        for name, mean, value in zip(self.names, self._means, results):
            if np.size(value) != 1:
                raise ValueError(
                    f"ScalarStats averages scalars, but {name!r} has the shape {np.shape(value)}: "
                    "take its mean in the model (tf.reduce_mean)."
                )
            mean.feed(float(np.asarray(value).item()) * weight, weight)

    def _after_inference(self) -> Dict[str, float]:
        begin = f"{self.prefix}_" if self.prefix else ""
        names = [begin + get_op_tensor_name(name)[0] for name in self.names]
        return {name: mean.ratio for name, mean in zip(names, self._means)}


class ClassificationError(Inferencer):
    """The share of examples that are classified wrongly, or of anything else that is 0 or 1.

    Args:
      wrong_tensor_name: a vector of the model with 1 for each wrong example and 0 for the others,
        such as that of `prediction_incorrect`.
      summary_name: of the scalar. Defaults to `validation_error`; to `val_error`, as in 2017, if
        the model is in the spelling of 2017.
    """

    def __init__(
        self, wrong_tensor_name: str = "incorrect_vector", summary_name: Optional[str] = None
    ) -> None:
        self.wrong_tensor_name = wrong_tensor_name
        self.summary_name = summary_name
        self._error = RatioCounter()

    def _setup_graph(self) -> None:
        if self.summary_name is None:
            model = getattr(self.trainer.config, "model", None)
            of_2017 = getattr(model, "in_spelling_of_2017", False)
            self.summary_name = "val_error" if of_2017 else "validation_error"

    def _before_inference(self) -> None:
        self._error.reset()

    def _get_fetches(self) -> List[str]:
        return [self.wrong_tensor_name]

    def _on_fetches(self, results: List[Any]) -> None:
        wrong = np.asarray(results[0])
        if wrong.ndim != 1:
            raise ValueError(
                f"ClassificationError takes a vector with a 0 or 1 for each example, but "
                f"{self.wrong_tensor_name!r} has the shape {wrong.shape}. Use ScalarStats for a "
                "mean over the batch."
            )
        self._error.feed(float(np.sum(wrong)), wrong.size)

    def _after_inference(self) -> Dict[str, float]:
        return {str(self.summary_name): self._error.ratio}


class BinaryClassificationStats(Inferencer):
    """Precision and recall of predictions that are 0 or 1, for labels of the same shape.

    The scalars are `{prefix}_precision`, the share of true positives among predicted positives, and
    `{prefix}_recall`, their share among positive labels; 0 where there are none.
    """

    def __init__(self, pred_tensor_name: str, label_tensor_name: str, prefix: str = "val") -> None:
        self._names = [pred_tensor_name, label_tensor_name]
        self.prefix = prefix
        self._counts = BinaryStatistics()

    def _before_inference(self) -> None:
        self._counts.reset()

    def _get_fetches(self) -> List[str]:
        return self._names

    def _on_fetches(self, results: List[Any]) -> None:
        self._counts.feed(*results)

    def _after_inference(self) -> Dict[str, float]:
        return {
            f"{self.prefix}_precision": self._counts.precision,
            f"{self.prefix}_recall": self._counts.recall,
        }
