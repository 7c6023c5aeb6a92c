"""The code blocks of the Markdown pages, and what the line in front of one says about it.

```python blocks, by that line:

    <!-- run -->            a whole program; with the setup of the page in front, if there is one
    <!-- setup -->          the lines that each whole program of this page begins with
    In `NAME`:              a piece of that file; the pieces of a page follow each other. A page
                            that has one file may say so in its text, and `<!-- file: NAME -->` here
    none                    only has to compile

```sh blocks that are marked `<!-- run -->` are command lines, run in the folder of those files.
"""

import re
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from tests.checks import ROOT

__all__ = ["Block", "blocks", "commands", "documents", "programs", "write_files"]

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>run|setup|file: (?P<hidden>[\w.]+)) -->\n+|In `(?P<file>[\w.]+)`:\n+)?"
    r"```(?P<language>python|sh)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """One block: where it is, in which language, its text, and what the line before it says.

    Attributes:
      mark: "run" or "setup", or None.
      file: the name of the file that it is a piece of, or None.
    """

    where: str
    language: str
    code: str
    mark: Optional[str]
    file: Optional[str]


def documents() -> List[Path]:
    """Every page of the project, in order."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    return sorted(path for path in found if path.parent.name != "scripts")  # what make docs writes


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a page in Python or for a shell, in order."""
    text = path.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        where = f"{path.relative_to(ROOT)}:{line}"
        language, code, mark = match.group("language", "code", "mark")
        yield Block(where, language, code, mark, match.group("hidden") or match.group("file"))


def programs(path: Path) -> Iterator[Block]:
    """The whole programs of a page, each with the setup of the page in front."""
    found = [block for block in blocks(path) if block.language == "python"]
    setup = "".join(block.code + "\n\n" for block in found if block.mark == "setup")
    for block in found:
        if block.mark == "run":
            yield block._replace(code=setup + block.code)


def write_files(path: Path, folder: Path) -> List[str]:
    """Writes the files of a page into a folder, and returns their names."""
    files = {}
    for block in blocks(path):
        if block.language == "python" and block.file:
            files.setdefault(block.file, []).append(block.code)
    for name, pieces in files.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n\n".join(pieces), encoding="utf-8")
    return list(files)


def commands(path: Path) -> List[Block]:
    """The marked command lines of a page, in order."""
    return [block for block in blocks(path) if block.language == "sh" and block.mark == "run"]
