"""Pages as they are on a Git host: files outside `docs`, links to them, and the sidebar.

On the site, a page with the first line `<!-- the site shows FILE -->` is replaced by that file.
Links between Markdown files become links between pages, links to other files offer the file, and
links to folders become text. A list behind `<!-- cards -->` is shown as cards. Each script that
`examples/README.md` links to has a page: its entry there, and its source. A page that builds files
out of blocks (see `tests/pages.py`) offers them whole.
"""

import fnmatch
import os
import re
from pathlib import Path

from tests.pages import write_files

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
GALLERY = ROOT / "examples" / "README.md"
SCRIPTS = DOCS / "examples" / "scripts"

_SHOWS = re.compile(r"\A<!-- the site shows (\S+) -->\n")
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]"
    r"\((?P<target>[^)\s]+)(?P<title> \"[^\"]*\")?\)"
)
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^- (.+(?:\n  .+)*)", re.MULTILINE)


def stand_ins():
    """File -> the page that shows it, for pages that show a file, and scripts of the gallery."""
    found = dict(_scripts())
    for page in DOCS.rglob("*.md"):
        shown = _SHOWS.match(page.read_text(encoding="utf-8"))
        if shown:
            found[(page.parent / shown.group(1)).resolve()] = page
    return found


def _scripts():
    for link in _LINK.finditer(GALLERY.read_text(encoding="utf-8")):
        script = (GALLERY.parent / link.group("target")).resolve()
        if script.suffix == ".py":
            name = "-".join(script.relative_to(GALLERY.parent).with_suffix("").parts)
            yield script, SCRIPTS / f"{name}.md"


def pages_of_scripts():
    """Page -> its text, for each script that an entry of the gallery links to."""
    shown_by, found = stand_ins(), {}
    for entry in _ENTRY.findall(GALLERY.read_text(encoding="utf-8")):
        for link in _LINK.finditer(entry):
            page = shown_by.get((GALLERY.parent / link.group("target")).resolve())
            if page is None or page.parent != SCRIPTS or page in found:
                continue
            source = os.path.relpath(str(GALLERY.parent / link.group("target")), str(SCRIPTS))
            title = " ".join(link.group("text").split())
            found[page] = (
                f"# {title}\n\n{_rewritten(entry, GALLERY, page, shown_by)}\n\n"
                f"{{download}}`{Path(source).name} <{source}>`:\n\n"
                f"```{{literalinclude}} {source}\n:language: python\n```\n"
            )
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
    source = (page.parent / shown.group(1)).resolve()
    return _rewritten(source.read_text(encoding="utf-8"), source, page, shown_by)


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

    parts = _FENCED.split(text.replace("<!-- cards -->\n\n", "{.cards}\n"))
    return "".join(part if part.startswith("```") else _LINK.sub(rewrite, part) for part in parts)


def offer_files(page, folder):
    """Writes the files of a page into a folder; returns the line that offers them."""
    link = os.path.relpath(folder, page.parent)
    links = [f"{{download}}`{name} <{link}/{name}>`" for name in write_files(page, folder)]
    return f"\n\nThe whole files of this page: {', '.join(links)}.\n" if links else ""


def children(navigation, pages):
    """Page -> the pages below it in the sidebar.

    Args:
      navigation: page -> names of pages and patterns, in which a `*` does not match a `/`. A page
        is taken by the first that matches it; `*` alone as the last pattern of all gets the rest.
      pages: the names of all pages.
    """
    left, found = set(pages) - {"index"}, {}
    for parent, patterns in navigation.items():
        found[parent] = []
        for pattern in patterns:
            depth = pattern.count("/")
            taken = [name for name in fnmatch.filter(left, pattern) if name.count("/") == depth]
            found[parent] += sorted(taken)
            left.difference_update(taken)
    return found


def table_of_contents(names):
    """The Markdown text of a hidden table of contents, which is what the sidebar is made of."""
    return "\n".join(["```{toctree}", ":hidden:", "", *[f"/{name}" for name in names], "```", ""])


def setup(app):
    app.add_config_value("navigation", {}, "env")
    shown_by = {}

    def begin(app):
        SCRIPTS.mkdir(exist_ok=True)
        texts = pages_of_scripts()
        for page in set(SCRIPTS.glob("*.md")) - set(texts):
            page.unlink()
        for page, text in texts.items():
            if not page.exists() or page.read_text(encoding="utf-8") != text:
                page.write_text(text, encoding="utf-8")
        shown_by.update(stand_ins())

    def read(app, name, content):
        page = Path(app.env.doc2path(name))
        if page.suffix != ".md":
            return
        for source in [path for path, shower in shown_by.items() if shower == page]:
            app.env.note_dependency(str(source))
        content[0] = text_of_page(page, content[0], shown_by)
        content[0] += offer_files(page, page.parent / "files" / page.stem)
        below = children(app.config.navigation, app.env.found_docs).get(name)
        if below:
            content[0] += "\n\n" + table_of_contents(below)

    app.connect("builder-inited", begin, priority=400)  # before the pages are listed
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
