"""Puts the page together. All text of a run is escaped: it may come from anybody."""

import os
from html import escape
from typing import Any, List, Optional

from tensorpack.runs.record import utc_now

from ._curves import curves_of
from ._facts import attempts_of, facts_of, headline_of
from ._read import Run
from ._style import STYLE
from ._tables import files_of, log_of, parameters_of, samples_of, times_of

# Nothing is loaded and nothing runs, whatever gets into the page.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page_of(run: Run, links_from: Optional[str], reload_seconds: float = 0) -> str:
    """Returns the page about a run.

    Args:
      run: what was read.
      links_from: the folder where the page is going to be; its links begin there. None for none.
      reload_seconds: after which a browser loads the page again; 0 for never.
    """
    title = escape(os.path.basename(run.directory) or run.directory)
    sections: List[Any] = [
        ("", facts_of(run)),
        ("Attempts", attempts_of(run)),
        ("Curves", curves_of(run)),
        ("Where the time goes", times_of(run)),
        ("Samples", samples_of(run, links_from)),
        ("Parameters", parameters_of(run)),
        ("The end of the log", log_of(run)),
        ("Files", files_of(run, links_from)),
    ]
    again = f'<meta http-equiv="refresh" content="{reload_seconds:g}">\n' if reload_seconds else ""
    body = "\n".join(
        f"<section>{f'<h2>{name}</h2>' if name else ''}\n{text}</section>"
        for name, text in sections
        if text
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{again}<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{title}</h1>\n{headline_of(run)}</header>\n{_notes(run)}{body}\n"
        f'<footer><p class="soft">Written {utc_now()}.</p></footer>\n</body>\n</html>\n'
    )


def _notes(run: Run) -> str:
    if not run.troubles:
        return ""
    lines = "".join(f"<p>{escape(each)}</p>" for each in run.troubles)
    return f'<div class="notes">{lines}</div>\n'
