"""The top of the page: how the run ended, and what was run where."""

import re
import shlex
import socket
import textwrap
from html import escape
from typing import Any, Dict, List

from tensorpack.utils._directory_lock import lock_owner
from tensorpack.utils._words import size_text

from ._chart import number_text
from ._read import Run
from ._tables import table_of

_CLASSES = {"finished": "good", "stopped": "open", "running": "open", "unknown": "open"}
_MEANINGS = {
    "lost": "the process crashed or was killed",
    "unknown": "nothing has its directory locked, perhaps because it ran on another machine",
}


def headline_of(run: Run) -> str:
    """Returns the result of the run in a line."""
    if not run.attempts:
        text = "No run.json tells how this run ended."
        if run.epochs:
            last = run.epochs[-1]
            text += f" Its statistics end at step {number_text(last['global_step'])}."
        return f'<p class="result soft">{text}</p>'
    last = run.attempts[-1]
    result = result_of(last, run.directory)
    parts = [f'<span class="badge {_CLASSES.get(result, "bad")}">{escape(result)}</span>']
    if last.get("message"):
        parts.append(f"<b>{escape(_plain(last['message']))}</b>")
    elif result in _MEANINGS:
        parts.append(_MEANINGS[result])
    seconds = sum(each["seconds"] for each in run.attempts if _is_number(each.get("seconds")))
    facts = [f"{name} {_plain(last[name])}" for name in ("epoch", "step") if name in last]
    if seconds:
        facts.append(f"after {duration_text(seconds)}")
    if last.get("checkpoint"):
        facts.append(f"last checkpoint {_plain(last['checkpoint'])}")
    best: Any = last.get("best")
    facts += [f"best {_plain(each)}" for each in best] if isinstance(best, list) else []
    return f'<p class="result">{" ".join(parts)} {escape(", ".join(facts))}</p>'


def facts_of(run: Run) -> str:
    """Returns what was run where, of the last attempt."""
    if not run.attempts:
        return ""
    last = run.attempts[-1]
    command, ended = last.get("command"), last.get("ended")
    words = [shlex.quote(_plain(each)) for each in command] if isinstance(command, list) else []
    versions = [f"{k} {_plain(v)}" for k, v in dict_in(last, "versions").items() if v]
    rows = [
        ("Command", _code(" ".join(words).replace(" '~/", " ~/'"))),  # which a shell expands
        ("Folder", _code(last.get("folder"))),
        ("Time", escape(f"{_time(last.get('started'))} to {_time(ended) if ended else 'now'}")),
        ("Machine", _machine(dict_in(last, "machine"), last.get("host"))),
        ("Versions", escape(", ".join(versions))),
        ("Commit", _commit(dict_in(last, "git"))),
        ("Training", _training(dict_in(last, "training"))),
        ("Seeds", _seeds(dict_in(last, "training"))),
    ]
    return "<dl>" + "".join(f"<dt>{k}</dt><dd>{v}</dd>" for k, v in rows if v) + "</dl>\n"


def attempts_of(run: Run) -> str:
    if len(run.attempts) < 2:
        return ""
    last = result_of(run.attempts[-1], run.directory)
    results = [_plain(each.get("result")) or "lost" for each in run.attempts[:-1]] + [last]
    cells = [_attempt_row(*each) for each in zip(run.attempts, results)]
    columns = [i for i in range(len(_COLUMNS)) if any(row[i] for row in cells)]
    rows = ([escape(row[i]) for i in columns] for row in cells)
    return table_of([_COLUMNS[i] for i in columns], rows)


_COLUMNS = ("started", "took", "from step", "to step", "result", "on", "commit", "")


def _attempt_row(attempt: Dict[str, Any], result: str) -> List[str]:
    seconds: Any = attempt.get("seconds")
    cells = [
        _time(attempt.get("started")),
        duration_text(seconds) if _is_number(seconds) else "",
        dict_in(attempt, "training").get("first_step", ""),
        attempt.get("step", ""),
        result,
        attempt.get("host", ""),
        _plain(dict_in(attempt, "git").get("commit"))[:10],
        textwrap.shorten(_plain(attempt.get("message")), 80, placeholder=" ..."),
    ]
    return [_plain(each) for each in cells]


def duration_text(seconds: float) -> str:
    """Returns a duration such as `2 h 5 min`."""
    minutes, rest = divmod(seconds, 60)
    if minutes < 1:
        return f"{seconds:.3g} s"
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {int(rest)} s"


def result_of(attempt: Dict[str, Any], directory: str) -> str:
    """Returns the result of the last attempt of a directory, or "running", "lost" or "unknown"."""
    known = _plain(attempt.get("result"))
    if known:
        return known
    is_here, owner = attempt.get("host") == socket.gethostname(), lock_owner(directory)
    if not owner:
        return "lost" if is_here and owner == 0 else "unknown"
    return "lost" if is_here and owner != attempt.get("process") else "running"


def _time(value: Any) -> str:
    return re.sub(r"^(\d{4}-\d\d-\d\d)T([\d:]{8})Z$", r"\1 \2 UTC", _plain(value))


def _machine(machine: Dict[str, Any], host: Any) -> str:
    gpus = machine.get("gpus")
    names = [
        f"{_plain(gpu.get('name'))} ({_size(gpu.get('memory'))})"
        for gpu in (gpus if isinstance(gpus, list) else [])
        if isinstance(gpu, dict)
    ]
    cpu, cores = _plain(machine.get("cpu")), _plain(machine.get("cores"))
    parts = [
        _plain(host),
        f"{cpu}, {cores} core{'s' * (cores != '1')}" if cpu else "",
        f"{_size(machine.get('memory'))} of memory" if machine.get("memory") else "",
        ", ".join(names) or "no GPU",
        _plain(machine.get("system")),
    ]
    return escape("; ".join(each for each in parts if each)) if machine else ""


def _commit(git: Dict[str, Any]) -> str:
    if not git:
        return ""
    dirty = git.get("dirty")
    state = ", with changes" if dirty else "" if dirty is False else ", changes not known"
    branch = f" on {_plain(git.get('branch'))}" if git.get("branch") else ""
    return _code(git.get("commit") or "none") + escape(branch + state)


_TRAINING = {
    "trainer": "{}",
    "model": "model {}",
    "input": "data from {}",
    "workers": "{} workers",
    "towers": "{} towers",
    "precision": "precision {}",
    "xla": "XLA",
    "steps_per_epoch": "{} steps per epoch",
    "resumed_from": "resumed from {}",
}


def _training(training: Dict[str, Any]) -> str:
    usual = {"workers": 1, "towers": 1}
    known = {key: value for key, value in training.items() if value and value != usual.get(key)}
    inputs = known.get("input")
    if isinstance(inputs, list):
        known["input"] = ", ".join(map(_plain, inputs))
    texts = [form.format(_plain(known[key])) for key, form in _TRAINING.items() if key in known]
    return escape(", ".join(texts))


def _seeds(training: Dict[str, Any]) -> str:
    if "seed" not in training:
        return ""
    seed = training["seed"]
    text = str(seed) if type(seed) is int else _plain(seed)  # without the commas of large numbers
    text = "not fixed: this run cannot be repeated exactly" if seed is None else text
    return escape(text + (", deterministic" if training.get("deterministic") else ""))


def dict_in(values: Dict[str, Any], name: str) -> Dict[str, Any]:
    """Returns a value that is a dictionary, {} for any other."""
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15


def _size(value: Any) -> str:
    return size_text(value) if _is_number(value) else "?"


def _plain(value: Any) -> str:
    """A value of the record as text: "" for what has parts, which none of those shown has."""
    if value is None or isinstance(value, (dict, list)):
        return ""
    return f"{value:,}" if type(value) is int else str(value)


def _code(value: Any) -> str:
    return f"<code>{escape(_plain(value))}</code>" if value else ""
