#!/usr/bin/env python
"""Makes notebooks of tutorials: `python docs/make_notebook.py OUT [PAGE ...]`.

The text of a page becomes cells of text, and the pieces of its files cells of code. All files share
the kernel, so what one of them imports from another is left out, and so are the commands that run
them.
"""

import argparse
import os
import re
from pathlib import Path

import jupytext

TUTORIALS = Path(__file__).resolve().parent / "tutorials"
PAGES = [TUTORIALS / "01-classifier.md"]
_COMMAND = re.compile(r"^<!-- run -->\n+```sh\n.*?^```\n+", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)")
_FILE = re.compile(r"^In `(\w+)\.py`:\n+", re.MULTILINE)


def notebook_text(page: str) -> str:
    """Returns the Markdown of a notebook, of which jupytext makes cells, from that of a page."""
    text = _FILE.sub("", _COMMAND.sub("", page))
    for name in set(_FILE.findall(page)):
        text = re.sub(rf"^from {name} import .*\n", "", text, flags=re.MULTILINE)
    return text


def write_notebook(page: Path, folder: Path) -> Path:
    """Writes the notebook of a page into a folder, and returns its path."""
    notebook = jupytext.reads(notebook_text(page.read_text(encoding="utf-8")), fmt="md")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":  # links lead from the folder of the notebook
            cell.source = _LINK.sub(f"]({os.path.relpath(page.parent, folder)}/", cell.source)
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata["kernelspec"] = python
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / page.with_suffix(".ipynb").name
    jupytext.write(notebook, path, fmt="ipynb")
    return path


def main() -> None:
    """Writes the notebooks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", metavar="OUT", type=Path, help="the folder to write to")
    parser.add_argument("pages", metavar="PAGE", nargs="*", type=Path, help="default: tutorial 1")
    args = parser.parse_args()
    for page in args.pages or PAGES:
        print(write_notebook(page, args.out))  # noqa: T201


if __name__ == "__main__":
    main()
