"""Pages as they are on a Git host: files outside `docs`, links to them, and the sidebar.

On the site, a page with the first line `<!-- the site shows FILE -->` is replaced by that file;
one with `<!-- the site begins with FILE -->` stands behind it, its headings a level lower. Links
between Markdown files become links between pages, links to other files offer the file, and links
to folders become text.
"""

import fnmatch
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"

_SHOWS = re.compile(r"\A<!-- the site (shows|begins with) (\S+) -->\n")
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]"
    r"\((?P<target>[^)\s]+)(?P<title> \"[^\"]*\")?\)"
)
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def stand_ins():
    """The file that a page shows -> the page, for all such pages."""
    found = {}
    for page in DOCS.rglob("*.md"):
        shown = _SHOWS.match(page.read_text(encoding="utf-8"))
        if shown:
            found[(page.parent / shown.group(2)).resolve()] = page
    return found


def text_of_page(page, text, shown_by):
    """The Markdown text of a page with its links rewritten.

    Args:
      page: path of the page in `docs`.
      text: what is written there.
      shown_by: `stand_ins()`.
    """
    shown = _SHOWS.match(text)
    if not shown:
        return _rewritten(text, page, page, shown_by)
    source = (page.parent / shown.group(2)).resolve()
    first = _rewritten(source.read_text(encoding="utf-8"), source, page, shown_by)
    if shown.group(1) == "shows":
        return first
    own = re.sub(r"^#", "##", text[shown.end() :], flags=re.MULTILINE)
    return first + "\n\n" + _rewritten(own, page, page, shown_by)


def _rewritten(text, written_in, page, shown_by):
    def rewrite(match):
        target, _, anchor = match.group("target").partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match.group()
        path = (written_in.parent / target).resolve()
        if path.is_dir() or not path.exists():
            return match.group("text")
        to = os.path.relpath(str(shown_by.get(path, path)), str(page.parent))
        to += f"#{anchor}" if anchor else ""
        return f"{match.group('image')}[{match.group('text')}]({to}{match.group('title') or ''})"

    parts = _FENCED.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(rewrite, part) for part in parts)


def sidebar(entries, order, pages):
    """The Markdown text of hidden tables of contents, one for each part of the sidebar.

    Args:
      entries: caption -> names of pages and patterns; a `*` does not match a `/`.
      order: captions, as they are shown.
      pages: the names of all pages.
    """
    left = set(pages) - {"index"}
    lines = {}
    for caption, patterns in entries.items():
        lines[caption] = []
        for pattern in patterns:
            depth = pattern.count("/")
            taken = [name for name in fnmatch.filter(left, pattern) if name.count("/") == depth]
            lines[caption] += sorted(taken)
            left.difference_update(taken)
    blocks = [_table_of_contents(name, lines[name]) for name in order if lines[name]]
    return "\n".join(blocks)


def _table_of_contents(caption, names):
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""])


def setup(app):
    app.add_config_value("navigation", {}, "env")
    app.add_config_value("navigation_order", [], "env")
    shown_by = {}

    def begin(app):
        shown_by.update(stand_ins())

    def read(app, name, content):
        page = Path(app.env.doc2path(name))
        if page.suffix != ".md":
            return
        for source in [path for path, shower in shown_by.items() if shower == page]:
            app.env.note_dependency(str(source))
        content[0] = text_of_page(page, content[0], shown_by)
        if name == app.config.root_doc:
            config = app.config
            contents = sidebar(config.navigation, config.navigation_order, app.env.found_docs)
            content[0] += "\n\n" + contents

    app.connect("builder-inited", begin)
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
