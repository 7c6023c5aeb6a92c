"""Several flows to one by chance: which of them gives the next datapoint is drawn each time.

`RandomChooseData` draws by fixed probabilities until a flow has no more, `RandomMixData` goes
through all of them to the end. Every pass draws from a stream of its own, so that passes at the
same time do not change one another.
"""

import bisect
import itertools
import math
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy as np

from tensorpack.utils.rng import rng_state, set_rng_state

from ._combined import CombinedDataFlow, listed
from ._flow import is_flow
from ._state import check_count, check_state
from .base import DataFlow, RNGDataFlow, UnknownLength

__all__ = ["RandomChooseData", "RandomMixData"]

_END = object()


class RandomChooseData(RNGDataFlow, CombinedDataFlow):
    """Takes each datapoint from one of several flows, until the one that is drawn has ended.

    It keeps a state, except where two of the flows are made from the same one.
    """

    _at_once = True

    # The stream of the pass begun or advanced last, and whether this pass has ended.
    _position: Optional[Tuple[np.random.RandomState, bool]] = None
    _resumed: Optional[Tuple[np.random.RandomState, bool]] = None

    def __init__(self, df_lists: Iterable[Union[DataFlow, Tuple[DataFlow, float]]]) -> None:
        """
        Args:
          df_lists: the flows, each as likely as the others, or pairs of a flow and its
            probability.

        Raises:
          TypeError: it is no list, or one of its elements is neither a flow nor such a pair.
          ValueError: it is empty, only some have a probability, or these are not probabilities
            that add up to 1 (but for rounding: within one millionth).
        """
        flows, probabilities = _split(self, listed(self, df_lists))
        super().__init__(flows)
        _check_probabilities(self, probabilities)
        bounds = list(itertools.accumulate(probabilities))
        # The last of them is exactly 1, and so is that of the last flow that can be drawn.
        self._bounds = [bound / bounds[-1] for bound in bounds]

    def __len__(self) -> int:
        """Never returns.

        Raises:
          UnknownLength: a pass ends with a flow, and which one that is changes by chance.
        """
        raise UnknownLength(
            f"The length of {type(self).__name__} is not known: chance decides which of its flows "
            "ends first."
        )

    def __iter__(self) -> Iterator[Any]:
        resumed, self._resumed = self._resumed, None
        rng, ended = resumed or (self.rng_of_pass(), False)
        self._position = rng, ended
        # All are begun, also where there is nothing left to yield: it uses up their loaded states.
        passes = [iter(flow) for flow in self.df_lists]
        return iter(()) if ended else self._pass(rng, passes)

    def _pass(self, rng: np.random.RandomState, passes: List[Iterator[Any]]) -> Iterator[Any]:
        while True:
            drawn = bisect.bisect_right(self._bounds, rng.random_sample())
            datapoint = next(passes[drawn], _END)
            self._position = rng, datapoint is _END
            if datapoint is _END:
                return
            yield datapoint

    def reset_state(self) -> None:
        RNGDataFlow.reset_state(self)
        CombinedDataFlow.reset_state(self)
        self._position = self._resumed = None

    def state_dict(self) -> Dict[str, Any]:
        rng, ended = self._position or (None, False)
        return {
            "flows": self._states(),
            "rng": rng_state(self.rng),
            "draws": None if rng is None else rng_state(rng),
            "ended": ended,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["flows", "rng", "draws", "ended"])
        self._load_states(state["flows"])
        set_rng_state(self.rng, state["rng"])
        self._position = self._resumed = None
        if state["draws"] is not None:
            self._position = self._resumed = _stream(state["draws"]), bool(state["ended"])


class RandomMixData(RNGDataFlow, CombinedDataFlow):
    """Goes through all of several flows at once, in an order that is drawn at random.

    Every order in which the datapoints of one flow follow one another as they do there is equally
    likely. Each flow must yield exactly as many datapoints as its length says.

    It keeps a state, except where two of the flows are made from the same one.
    """

    _at_once = True

    # The stream of the pass begun or advanced last, and what each flow has left of that pass.
    _position: Optional[Tuple[np.random.RandomState, List[int]]] = None
    _resumed: Optional[Tuple[np.random.RandomState, List[int]]] = None

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        """
        Args:
          df_lists: the flows, at least one, all of a known length.

        Raises:
          TypeError: it is no list, or one of its elements is not a flow.
          UnknownLength: the length of one of them is not known; a `TypeError` as well.
          ValueError: it is empty.
        """
        super().__init__(df_lists)
        self._lengths()

    def __len__(self) -> int:
        """Returns the sum of the lengths."""
        return sum(self._lengths())

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          RuntimeError: a flow yields fewer or more datapoints than its length says.
        """
        resumed, self._resumed = self._resumed, None
        lengths = self._lengths()
        rng, left = resumed or (self.rng_of_pass(), list(lengths))
        self._position = rng, left
        return self._pass(rng, lengths, left, [iter(flow) for flow in self.df_lists])

    def _pass(
        self,
        rng: np.random.RandomState,
        lengths: List[int],
        left: List[int],
        passes: List[Iterator[Any]],
    ) -> Iterator[Any]:
        for total in range(sum(left), 0, -1):
            # One of all the datapoints that are left; which flow it belongs to is what counts.
            number = int(rng.randint(total))
            drawn = bisect.bisect_right(list(itertools.accumulate(left)), number)
            datapoint = next(passes[drawn], _END)
            if datapoint is _END:
                raise self._wrong_length(drawn, f"ended after {lengths[drawn] - left[drawn]}")
            left[drawn] -= 1
            self._position = rng, left
            yield datapoint
        for position, rest in enumerate(passes):
            if next(rest, _END) is not _END:
                raise self._wrong_length(position, "yielded more")

    def reset_state(self) -> None:
        RNGDataFlow.reset_state(self)
        CombinedDataFlow.reset_state(self)
        self._position = self._resumed = None

    def state_dict(self) -> Dict[str, Any]:
        rng, left = self._position or (None, None)
        return {
            "flows": self._states(),
            "rng": rng_state(self.rng),
            "draws": None if rng is None else rng_state(rng),
            "left": None if left is None else list(left),
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["flows", "rng", "draws", "left"])
        left = state["left"]
        if left is not None:
            self._check_left(left)
        self._load_states(state["flows"])
        set_rng_state(self.rng, state["rng"])
        self._position = self._resumed = None
        if left is not None:
            self._position = self._resumed = _stream(state["draws"]), list(left)

    def _check_left(self, left: Any) -> None:
        lengths = self._lengths()
        if not isinstance(left, list) or len(left) != len(lengths):
            raise ValueError(
                f"This is not a state of this {type(self).__name__}, which has {len(lengths)} "
                f"flows: {left!r:.80} is how many datapoints each has left."
            )
        for count, length in zip(left, lengths):
            check_count(self, count, length)

    def _lengths(self) -> List[int]:
        lengths = []
        for position, flow in enumerate(self.df_lists):
            try:
                lengths.append(len(flow))
            except UnknownLength as error:
                raise UnknownLength(
                    f"{type(self).__name__} needs the length of every flow, but that of flow "
                    f"{position} (counted from 0), a {type(flow).__name__}, is not known. Use "
                    "RandomChooseData, or give it a length."
                ) from error
        return lengths

    def _wrong_length(self, position: int, what: str) -> RuntimeError:
        flow = self.df_lists[position]
        return RuntimeError(
            f"{type(self).__name__}: flow {position} (counted from 0), a {type(flow).__name__}, "
            f"has a length of {len(flow)}, but {what}. Correct its length; of what drops "
            "datapoints, such as MapData, it is too large."
        )


def _split(flow: DataFlow, elements: List[Any]) -> Tuple[List[DataFlow], List[float]]:
    """Returns flows and probabilities from a list of flows, or of pairs of both."""
    name = type(flow).__name__
    paired = [isinstance(element, (list, tuple)) for element in elements]
    if not any(paired):
        return elements, [1 / len(elements)] * len(elements)
    if not all(paired):
        raise ValueError(
            f"{name}: number {paired.index(False)} of {len(elements)} (counted from 0) has no "
            "probability, but others have. Give one to every flow, or to none."
        )
    for position, element in enumerate(elements):
        if len(element) != 2:
            raise TypeError(
                f"{name} takes pairs of a flow and its probability, but number {position} "
                f"(counted from 0) has {len(element)} elements."
            )
        _check_pair(name, position, *element)
    return [each for each, _ in elements], [float(number) for _, number in elements]


def _check_pair(name: str, position: int, flow: Any, number: Any) -> None:
    try:
        float(number)
    except (TypeError, ValueError) as error:
        swapped = is_flow(number)
        advice = "The flow comes first." if swapped else "Give a number from 0 to 1."
        raise TypeError(
            f"{name} takes pairs of a flow and its probability, but number {position} (counted "
            f"from 0) is of {type(flow).__name__} and {type(number).__name__}. {advice}"
        ) from error


def _check_probabilities(flow: DataFlow, probabilities: List[float]) -> None:
    total = math.fsum(probabilities)
    # Not `any(... < 0)`: a NaN is neither less than 0 nor anything else.
    if not all(number >= 0 for number in probabilities) or not math.isclose(total, 1, rel_tol=1e-6):
        raise ValueError(
            f"{type(flow).__name__} needs probabilities that are not negative and add up to 1, "
            f"but got {probabilities}, which is {total:.9g} together."
        )


def _stream(state: Dict[str, Any]) -> np.random.RandomState:
    rng = np.random.RandomState(0)
    set_rng_state(rng, state)
    return rng
