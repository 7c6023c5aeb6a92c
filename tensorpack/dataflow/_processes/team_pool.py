"""Teams of worker processes between two passes, so that not every pass has to start some."""

import os
import threading
from multiprocessing import util
from typing import Any, Callable, List

from ..base import DataFlowTerminated
from .team import Team

__all__ = ["TeamPool"]


class TeamPool:
    """Keeps the teams of a flow: one works for one pass at a time.

    Args:
      owner: the flow; the teams are closed when it is gone, or this interpreter ends.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._idle: List[Team] = []
        self._all: List[Team] = []
        self._closings = 0
        # At the end of the interpreter this comes before multiprocessing asks its children to
        # leave and waits for them, for ever if one of them is stopped.
        util.Finalize(owner, self.close, exitpriority=1)

    def prepare(self, make: Callable[[], Team]) -> None:
        """Sees to it that there is a team."""
        if not self._all:
            self.give_back(self.take(make))

    def take(self, make: Callable[[], Team]) -> Team:
        """Returns a team that has nothing to do, made by `make` if there is none.

        Raises:
          DataFlowTerminated: the pool was closed while a team was made.
        """
        with self._lock:
            if self._idle:
                return self._idle.pop()
            closings = self._closings
        team = make()
        with self._lock:
            if closings == self._closings:
                self._all.append(team)
                return team
        team.close()
        raise DataFlowTerminated("The flow was closed while its processes were being started.")

    def give_back(self, team: Team) -> None:
        """Takes a team back that has nothing to do any more; forgets one that was closed.

        Does nothing in a forked copy.
        """
        if os.getpid() != self._owner:
            return
        with self._lock:
            if team not in self._all:
                return
            if team.closed:
                self._all.remove(team)
            else:
                self._idle.append(team)

    def close(self) -> None:
        """Ends all workers, also those that work; what waits for them ends, too.

        Does nothing in a forked copy.
        """
        if os.getpid() != self._owner:
            return
        with self._lock:
            teams, self._all, self._idle = self._all, [], []
            self._closings += 1
        for team in teams:
            team.close()
