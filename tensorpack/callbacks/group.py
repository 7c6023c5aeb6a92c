"""The ordered group of all callbacks of a run: calls them, times them, and handles their errors."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import StateNotKept
from tensorpack.utils import logger
from tensorpack.utils.checkpoints.segments import abandon

from .base import Callback, innermost
from .hooks import CallbackToHook, effective, sees_runs, sees_steps

__all__ = ["Callbacks", "of_other_workers"]

_REPORT_SECONDS = 3.0  # in total, below which nothing is said
_SLOW_SECONDS = 1.0  # a callback slower than this is named ...
_SLOW_FRACTION = 0.3  # ... and so is one that took more than this fraction of the total


class Callbacks(Callback):
    """Calls callbacks one after the other, in the order of the list, though those `leading` first.

    An error of a callback ends the round and goes to the caller. `after_train` is the exception: it
    runs for every callback whose `before_train` was entered, whatever the others do; the first
    error is raised when all have run. Between two callbacks a requested stop ends the round.

    A round of `trigger_step`, `after_epoch` or `trigger_epoch` can be saved when only some
    callbacks were called (`unfinished_hook`), and finished in another process (`resume_hook`).

    Attributes:
      step_seconds: how long `trigger_step` of each callback that has one took so far, by its name.
    """

    def __init__(
        self,
        cbs: Sequence[Callback],
        clock: Callable[[], float] = time.monotonic,
        leading: Sequence[Callback] = (),
    ) -> None:
        self.cbs = [cb for cb in cbs if cb in leading] + [cb for cb in cbs if cb not in leading]
        # The order of the list says which number each has in a state, also in those of earlier
        # versions, and which saver is the first.
        self._names = _names_of(cbs)
        self._setup_order = [cb for cb in self.cbs if not cb.sets_up_last]
        self._setup_order += [cb for cb in cbs if cb.sets_up_last]
        self._clock = clock
        self._entered: List[Callback] = []
        self._stepped = [cb for cb in self.cbs if sees_steps(cb)]
        self._step_progress = _HookProgress("trigger_step", self._stepped)
        names = [self._names[id(cb)] for cb in self._stepped]
        self._step_calls = list(zip(names, (effective(cb, "trigger_step") for cb in self._stepped)))
        self.step_seconds = dict.fromkeys(names, 0.0)
        self._stateless: Set[str] = set()  # names of those that need a state and keep none
        self._progress: Optional[_HookProgress] = None

    def setup_graph(self, trainer: Any) -> None:
        """Sets each callback up, under its own name scope only."""
        self.trainer = trainer
        self.graph = tf.get_default_graph()
        for cb in self._setup_order:
            cb.setup_graph(trainer)
            trainer.check_stop()

    def get_hooks(self) -> List[tf.train.SessionRunHook]:
        """Returns a hook for each callback that does something before or after a run."""
        return [CallbackToHook(cb) for cb in self.cbs if sees_runs(cb)]

    def run_along(self, sess: tf.Session, fetches: Any) -> List[tf.Operation]:
        """Returns what any of the callbacks lets run along with these fetches."""
        return [op for cb in self.cbs for op in cb.run_along(sess, fetches)]

    def _before_train(self) -> None:
        for cb in self.cbs:
            self._entered.append(cb)
            cb.before_train()
            self.trainer.check_stop()

    def check_over(self) -> None:
        """Asks each callback whether the run ends before its next epoch."""
        for cb in self.cbs:
            if type(cb).check_over is not Callback.check_over:
                cb.check_over()

    def _before_epoch(self) -> None:
        for cb in self.cbs:
            cb.before_epoch()

    def trigger_step(self) -> None:
        """Calls those that do something after each step."""
        self._progress = progress = self._step_progress
        progress.called = 0
        start = self._clock()
        for name, trigger_step in self._step_calls:
            trigger_step()
            progress.called += 1
            now = self._clock()
            self.step_seconds[name] += now - start
            start = now
        self._progress = None

    def _after_epoch(self) -> None:
        self._call_all(_HookProgress("after_epoch", self.cbs))

    def _trigger_epoch(self) -> None:
        self._call_all(_HookProgress("trigger_epoch", self.cbs))

    def _call_all(self, progress: "_HookProgress") -> None:
        """Calls a hook that belongs to no step, and logs what took long."""
        self._progress = progress
        times: List[Tuple[float, str]] = []
        for cb in progress.members:
            start = self._clock()
            getattr(cb, progress.hook)()
            times.append((self._clock() - start, str(cb)))
            progress.called += 1
            self.trainer.check_stop()
        self._progress = None
        if progress.hook == "trigger_epoch":
            _report(times)

    def unfinished_hook(self, with_current: bool) -> Tuple[Optional[str], List[str]]:
        """Returns the hook that is being called, None if there is none, and the names of the
        callbacks that it was called for; `with_current` counts the one that it is in.
        """
        if self._progress is None:
            return None, []
        progress = self._progress
        called = progress.members[: progress.called + int(with_current)]
        return progress.hook, [*progress.done_before, *(self._names[id(cb)] for cb in called)]

    def resume_hook(self, hook: str, done: Sequence[str]) -> None:
        """Calls a hook for those callbacks that `unfinished_hook` did not name."""
        members = self._stepped if hook == "trigger_step" else self.cbs
        rest = [cb for cb in members if self._names[id(cb)] not in done]
        self._call_all(_HookProgress(hook, rest, done))

    def state_dict(self) -> Dict[str, Any]:
        """Returns the states of those that have one, by name; None for a state that is not kept."""
        states: Dict[str, Any] = {}
        try:
            for cb in self.cbs:
                name = self._names[id(cb)]
                try:
                    state = cb.state_dict()
                except StateNotKept as error:  # it is a DataFlow as well
                    if name not in self._stateless:
                        self._stateless.add(name)
                        logger.warning(f"This run cannot be resumed exactly: {error}")
                    states[name] = None
                else:
                    states.update({name: state} if state else {})
        except BaseException:
            abandon(states)
            raise
        return states

    def names(self) -> List[str]:
        """Returns a name for each callback, in their order; the second `X` is `X#2`."""
        return [self._names[id(cb)] for cb in self.cbs]

    def load_states(self, states: Dict[str, Any], names: Sequence[str], strictly: bool) -> None:
        """Hands each callback its state, given what `state_dict` and `names` returned.

        It is a warning, or a ValueError if `strictly`, if there are more or fewer callbacks of a
        kind that has states, if a state was not kept, or if it belongs to something else, such as
        another scalar.
        """
        self._compare_kinds(states, names, strictly)
        lost = ", ".join(name for name, state in states.items() if state is None)
        if lost:
            why = "was not kept when the run was saved: it begins again"
            _warn(f"The state of {lost} {why}.", strictly)
        for cb in self.cbs:
            name, subject = self._names[id(cb)], innermost(cb).state_of
            state = states.get(name)
            if state and subject and state.get("of", subject) != subject:
                message = f"{name} is of {subject}, but its state of {state['of']}: not used."
                _warn(message, strictly)
            elif state is not None:
                try:
                    cb.load_state_dict(state)
                except (LookupError, TypeError) as error:
                    message = f"{name} cannot use the state that it had: {error!r}"
                    raise ValueError(message) from error

    def _compare_kinds(self, states: Dict[str, Any], names: Sequence[str], strictly: bool) -> None:
        before, now = _count_kinds(names), _count_kinds(self.names())
        changed = [
            f"{before[kind]} {kind} when the state was saved, and {now[kind]} now"
            for kind in sorted(_count_kinds(states))
            if before[kind] != now[kind]
        ]
        if changed:
            rule = "States of several callbacks of one class are matched in order."
            _warn(f"There were {'; '.join(changed)}. {rule}", strictly)

    def _after_train(self) -> None:
        entered, self._entered = self._entered, []
        first: Optional[BaseException] = None
        for cb in entered:
            try:
                cb.after_train()
            except BaseException as error:  # the others have threads and files to end
                logger.error(f"{cb} failed at the end of the run: {error!r}")
                first = first or error
        if first is not None:
            raise first


def of_other_workers(callbacks: Sequence[Callback]) -> List[Callback]:
    """Returns those that run on each worker of a group, and logs which run on the chief only."""
    names = ", ".join(str(cb) for cb in callbacks if cb.chief_only)
    if names:
        logger.warning(f"These callbacks run on the chief only and are skipped here: {names}.")
    return [cb for cb in callbacks if not cb.chief_only]


@dataclass
class _HookProgress:
    """A hook that is called for one callback after the other, and may be left in between."""

    hook: str
    members: Sequence[Callback]
    done_before: Sequence[str] = ()  # names of those that were called in another process
    called: int = 0  # how many of the members


def _names_of(callbacks: Sequence[Callback]) -> Dict[int, str]:
    """Returns a unique name for each callback, by its id; the second `X` is `X#2`."""
    counts: Counter[str] = Counter()
    names = {}
    for cb in callbacks:
        name = str(cb)
        counts[name] += 1
        names[id(cb)] = name if counts[name] == 1 else f"{name}#{counts[name]}"
    return names


def _warn(message: str, strictly: bool) -> None:
    """Warns of what keeps a run from being resumed exactly; raises ValueError if it has to be."""
    if strictly:
        raise ValueError(message)
    logger.warning(message)


def _count_kinds(names: Iterable[str]) -> "Counter[str]":
    """How many of these names there are of each kind, without the number after it."""
    return Counter(name.partition("#")[0] for name in names)


def _report(times: List[Tuple[float, str]]) -> None:
    total = sum(seconds for seconds, _ in times)
    if total < _REPORT_SECONDS:
        return
    slow = [
        f"{name}: {seconds:.3f}sec"
        for seconds, name in sorted(times, reverse=True)
        if seconds > _SLOW_SECONDS or seconds > _SLOW_FRACTION * total
    ]
    logger.info(f"Callbacks took {total:.3f} sec in total. {'; '.join(slow)}")
