"""Sends inputs to a team of workers and takes the results, with a bounded number on the way."""

from typing import Any, Dict, Iterable, Iterator, Optional, Tuple

from tensorpack.utils.packed import Packed, pack

from .team import Failure, Team

__all__ = ["answers_as_they_come", "answers_in_order"]


class _Desk:
    """Numbers inputs, and finds the number of each result.

    Args:
      team: works for nobody else meanwhile. It may still be busy with what was sent before.
      inputs: what to send.
      most: how many inputs may be sent whose results were not yet given out.
    """

    def __init__(self, team: Team, inputs: Iterable[Any], most: int) -> None:
        self._team, self._inputs, self._most = team, enumerate(inputs), most
        self._next: Optional[Tuple[int, Packed]] = None
        self._is_empty = False
        self._error: Optional[Exception] = None
        self._numbers: Dict[int, int] = {}  # by tag

    def answer(self, kept: int = 0) -> Optional[Tuple[int, Any]]:
        """Returns the number and the result of an input; None when there are no more.

        Args:
          kept: how many results the caller keeps back.

        Raises:
          Exception: a worker ended; or what the inputs raised, after all results before that.
        """
        while True:
            if self._next is None and len(self._numbers) + kept < self._most:
                self._fetch()
            if self._next is None and not self._numbers:
                if self._error is not None:
                    raise self._error
                return None
            item = self._exchange()
            if item is not None:
                number = self._numbers.pop(item[0], None)
                if number is not None:  # else it is of a pass that was left
                    return number, item[1]
                item = None

    def _fetch(self) -> None:
        if self._is_empty:
            return
        try:
            number, obj = next(self._inputs, (0, None))
            self._is_empty = obj is None
            self._next = None if obj is None else (number, pack(obj))
        except Exception as error:
            self._is_empty, self._error = True, error

    def _exchange(self) -> Optional[Tuple[int, Any]]:
        """Sends what is next if it can; returns a result, or None if it need not wait for one."""
        if self._next is None:
            return self._team.take()
        number, packed = self._next
        tag = self._team.send(packed)
        if tag is None:
            return self._team.take_if(or_room=True)
        self._numbers[tag], self._next = number, None
        return self._team.take_if()


def answers_as_they_come(team: Team, inputs: Iterable[Any], most: int) -> Iterator[Any]:
    """Yields the results of all inputs, None among them.

    Args:
      team: its workers answer inputs.
      inputs: what to send; not None.
      most: how many may be on the way.

    Raises (while iterating):
      Exception: what a worker raised, or that one ended, or what the inputs raised.
    """
    desk = _Desk(team, inputs, most)
    item = desk.answer()
    while item is not None:
        yield _checked(item[1])
        item = None  # the memory of the result may be waited for
        item = desk.answer()


def answers_in_order(team: Team, inputs: Iterable[Any], most: int) -> Iterator[Any]:
    """Yields the results in the order of the inputs; the arguments are the same."""
    desk = _Desk(team, inputs, most)
    early: Dict[int, Any] = {}
    wanted = 0
    item = desk.answer()
    while item is not None:
        early[item[0]] = item[1]
        item = None
        while wanted in early:
            wanted += 1
            yield _checked(early.pop(wanted - 1))
        item = desk.answer(len(early))


def _checked(result: Any) -> Any:
    if isinstance(result, Failure):
        raise result.error
    return result
