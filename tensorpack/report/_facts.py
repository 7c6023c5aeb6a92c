"""How a run ended, and what was run where, from its `run.json`."""

import shlex
import socket
from html import escape
from typing import Any, Dict

import numpy as np

from tensorpack.runs.record import LOST
from tensorpack.utils._directory_lock import lock_owner
from tensorpack.utils._words import size_text
from tensorpack.utils.timer import humanize_time_delta

from ._read import Run

_CLASSES = {"finished": "good", "failed": "bad", LOST: "bad"}


def headline_of(run: Run) -> str:
    """Returns the result of the run, and what of it cannot be shown."""
    notes = "".join(f'\n<p class="open">{escape(note)}</p>' for note in run.notes)
    if run.attempts:
        seconds = sum(attempt.get("seconds", 0) for attempt in run.attempts)
        last = {**run.attempts[-1], "seconds": seconds}
        return f"<p>{_outcome(last, _result(last, run.directory))}</p>{notes}"
    end = "".join(f" Its last step was {e['global_step']:,.0f}." for e in run.epochs[-1:])
    return f"<p>No run.json tells how this run ended.{end}</p>{notes}"


def attempts_of(run: Run) -> str:
    """Returns when each attempt began and how it ended, if there were several."""
    parts, results = [], [attempt.get("result", LOST) for attempt in run.attempts[:-1]]
    if not results:
        return ""
    results.append(_result(run.attempts[-1], run.directory))
    for attempt, result in zip(run.attempts, results):
        start = f"{attempt.get('started')}, from step {first_step_of(attempt):,}"
        parts += [f"<dt>{escape(start)}</dt><dd>{_outcome(attempt, result)}</dd>"]
    return f"<dl>{''.join(parts)}</dl>"


def first_step_of(attempt: Dict[str, Any]) -> int:
    """Returns the step from which an attempt went on."""
    return (attempt.get("training") or {}).get("first_step") or 0


def facts_of(run: Run) -> str:
    """Returns what was run where, in the last attempt."""
    if not run.attempts:
        return ""
    last = run.attempts[-1]
    machine, git, training = (last.get(name) or {} for name in ("machine", "git", "training"))
    gpus = [f"{gpu['name']} ({size_text(gpu['memory'])})" for gpu in machine.get("gpus") or []]
    hardware = [
        last.get("host"),
        f"{machine.get('cpu')}, cores: {machine.get('cores')}",
        f"{size_text(machine.get('memory'))} of memory",
        ", ".join(gpus) or "no GPU",
        machine.get("system"),
    ]
    dirty = git.get("dirty")
    changes = ", with changes" if dirty else "" if dirty is False else ", changes not known"
    known = {**training, "input": ", ".join(training.get("input") or [])}
    seed = known.pop("seed", None)
    command = " ".join(map(shlex.quote, last.get("command") or []))
    sizes = [int(np.prod(shape)) for _, shape, _ in run.parameters]
    rows = {
        "Command": command.replace(" '~/", " ~/'"),  # which a shell expands
        "Folder": last.get("folder"),
        "Time": f"{last.get('started')} to {last.get('ended') or 'now'}",
        "Machine": "; ".join(filter(None, hardware)) if machine else "",
        "Versions": ", ".join(f"{k} {v}" for k, v in (last.get("versions") or {}).items() if v),
        "Commit": f"{git.get('commit')} on {git.get('branch')}{changes}" if git else "",
        "Training": ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in known.items() if v),
        "Parameters": f"{len(sizes)} variables, {sum(sizes):,} numbers" if sizes else "",
        "Seed": "not fixed: this run cannot be repeated exactly" if seed is None else str(seed),
    }
    return f"<dl>{''.join(f'<dt>{k}</dt><dd>{escape(v)}</dd>' for k, v in rows.items() if v)}</dl>"


def _outcome(attempt: Dict[str, Any], result: str) -> str:
    facts = [f"{name} {attempt[name]:,}" for name in ("epoch", "step") if name in attempt]
    if attempt.get("seconds"):
        facts.append(f"after {humanize_time_delta(attempt['seconds'])}")
    if attempt.get("checkpoint"):
        facts.append(f"last checkpoint {attempt['checkpoint']}")
    facts += [f"best {best}" for best in attempt.get("best") or []]
    badge = f'<span class="badge {_CLASSES.get(result, "open")}">{escape(result)}</span>'
    message = escape(attempt.get("message") or "")
    return f"{badge} <b>{message}</b> {escape(', '.join(facts))}"


def _result(attempt: Dict[str, Any], directory: str) -> str:
    """The result of the last attempt; "running", "lost" or "unknown" while it has none."""
    if attempt.get("result"):
        return attempt["result"]
    is_here, owner = attempt.get("host") == socket.gethostname(), lock_owner(directory)
    if not owner:
        return LOST if is_here and owner == 0 else "unknown"
    return LOST if is_here and owner != attempt.get("process") else "running"
