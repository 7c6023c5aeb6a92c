"""Writes the pages of the API reference: one for each task of `tasks.py`, and one of the packages.

An object is documented once, under its shortest public address; its other addresses lead there.
The pages are written to `docs/reference/api` when a build starts. A public name that no task lists
is an error that names it. `docs/reference/examples/NAME.py` is shown in the entry of NAME.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

from tensorpack._public_names import HOMES, MODULES

from .docstrings import rewrite
from .tasks import SECTIONS, TASKS, guides_of, names_of

FOLDER = Path(__file__).resolve().parent.parent / "reference" / "api"
EXAMPLES = FOLDER.parent / "examples"
PACKAGES = "Packages"  # the title of the page of the packages


def addresses():
    """Dotted names of the packages and modules that have public names, packages first."""
    packages = sorted({f"tensorpack.{home}" for home in HOMES.values()})
    return packages + sorted(set(MODULES.values()) - set(packages))


def public_objects():
    """Address -> {name: object} of what is documented there; other name -> name for the rest."""
    documented, others, where = {}, {}, {}
    for address in addresses():
        module = importlib.import_module(address)
        documented[address] = {}
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, ModuleType) and f"{address}.{name}" in addresses():
                continue  # it has an entry of its own
            known = where.setdefault((name, id(thing)), f"{address}.{name}")
            if known == f"{address}.{name}":
                documented[address][name] = thing
            else:
                others[f"{address}.{name}"] = known
    return {address: names for address, names in documented.items() if names}, others


def full_names(title):
    """The full names that a task lists, in its order."""
    for address, name in names_of(title):
        yield f"tensorpack.{address or HOMES.get(name, '')}.{name}"


def by_task(documented):
    """Title of a page -> {full name: object}.

    Raises:
      ValueError: a public name is on no page, or on two, or a page lists what is no public name.
    """
    objects = {
        f"{at}.{name}": thing for at, names in documented.items() for name, thing in names.items()
    }
    listed = [name for title in TASKS for name in full_names(title)]
    wrong = {
        "no page lists": sorted(set(objects) - set(listed)),
        "not public, but listed:": sorted(set(listed) - set(objects)),
        "listed twice:": sorted({name for name in listed if listed.count(name) > 1}),
    }
    found = [f"{what} {', '.join(names)}" for what, names in wrong.items() if names]
    if found:
        raise ValueError(f"{'; '.join(found)}. Edit docs/_extension/tasks.py.")
    return {title: {name: objects[name] for name in full_names(title)} for title in TASKS}


def page(title, names):
    """The text of the page of a task.

    Args:
      title: its title, a key of `TASKS`.
      names: {full name: object}, in their order.
    """
    guides = ", ".join(f":doc:`/{guide}`" for guide in guides_of(title))
    lines = [
        _heading(title, "="),
        f".. highlight:: python\n\nSee also: {guides}.",
        _summary(names),
        *[_entry(name, thing) for name, thing in names.items()],
    ]
    return "\n\n".join(lines) + "\n"


def page_of_packages(documented):
    """The text of the page that says what each package and module is for, and what it has."""
    lines = [_heading(PACKAGES, "=")]
    for address, names in documented.items():
        links = ", ".join(f":py:obj:`{name} <{address}.{name}>`" for name in names)
        lines += [
            _heading(address, "-"),
            f".. py:module:: {address}",
            _first_sentence(importlib.import_module(address)),
            f".. container:: all-names\n\n   {links}",
        ]
    return "\n\n".join(lines) + "\n"


def contents():
    """The pages of the reference by section, in Markdown."""
    first = {title: section for section, title in SECTIONS.items()}
    text = ""
    for title in [*TASKS, PACKAGES]:
        begins = first.get(title)
        text += f"\n- **{begins}**: " if begins else ", "
        text += f"{{doc}}`/reference/api/{slug(title)}`"
    return text


def slug(title):
    """The name of the file of a page, such as `map-and-processes`."""
    return title.lower().replace(" ", "-").replace(".", "-")


def _heading(title, line):
    return f"{title}\n{line * len(title)}"


def _docstring(thing):
    return "\n".join(rewrite((inspect.getdoc(thing) or "").split("\n")))


def _first_sentence(thing):
    text = " ".join(_docstring(thing).split("\n\n")[0].split())
    sentence = re.match(r"(?:``.*?``|[^`])*?(?:(?<!\.\.)\.(?=\s)|$)", text)
    # What introduces a block of code ends before "such as" and the like.
    return re.sub(
        r"(,? (such as|like this|as in|by))? ?::?$", ".", sentence.group() if sentence else text
    )


def _summary(names):
    rows = ""
    for name, thing in names.items():
        what = _first_sentence(thing)
        if isinstance(thing, (int, str)):
            what = f"The constant ``{thing!r}``."
        elif _is_other_name(name, thing):
            what = f"Another name of ``{thing.__name__}``."
        rows += f"   * - :py:obj:`{name.rpartition('.')[2]} <{name}>`\n     - {what}\n"
    return f".. list-table::\n   :class: names\n   :widths: 30 70\n\n{rows}"


def _is_other_name(name, thing):
    return inspect.isclass(thing) and thing.__name__ != name.rpartition(".")[2]


def _entry(name, thing):
    if isinstance(thing, ModuleType):
        return f".. autodata:: {name}\n   :no-value:"
    kind = "autoclass" if inspect.isclass(thing) else "autofunction"
    return f".. {kind if callable(thing) else 'autodata'}:: {name}"


def write(app):
    documented, _ = public_objects()
    texts = {slug(title): page(title, names) for title, names in by_task(documented).items()}
    texts[slug(PACKAGES)] = page_of_packages(documented)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in set(FOLDER.rglob("*.rst")) - {FOLDER / f"{name}.rst" for name in texts}:
        path.unlink()
    for name, text in texts.items():
        path = FOLDER / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class _Entries:
    """What autodoc leaves out of the entry of a class, and the example that it adds."""

    def __init__(self):
        documented, _ = public_objects()
        self.public = [each for names in documented.values() for each in names.values()]
        self.shown = set()

    def is_public(self, thing):
        return any(thing is each for each in self.public)

    def skip(self, app, what, name, member, skip, options):
        """Hides a method that does what the same method of a public base is said to do."""
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        owner = sys.modules.get(getattr(function, "__module__", None))
        for part in getattr(function, "__qualname__", "").split(".")[:-1]:
            owner = getattr(owner, part, None)
        bases = inspect.getmro(owner)[1:] if inspect.isclass(owner) else ()
        doubles = [base for base in bases if name in vars(base) and self.is_public(base)]
        return True if doubles else None

    def bases(self, app, name, thing, options, bases):
        """Replaces a base that is not public by the nearest one that is."""
        for at, base in enumerate(bases):
            if getattr(base, "__module__", "").startswith("tensorpack"):
                public = [each for each in inspect.getmro(base) if self.is_public(each)]
                bases[at] = public[0] if public else object
        bases[:] = list(dict.fromkeys(bases))

    def example(self, app, what, name, thing, options, lines):
        path = EXAMPLES / f"{name.rpartition('.')[2]}.py"
        if name in self.shown or not path.exists():
            return
        self.shown.add(name)  # the docstring of `__init__` follows under the same name
        model = ""
        if "from classifier" in path.read_text(encoding="utf-8"):
            model = " with :download:`classifier.py </reference/examples/classifier.py>`"
        shown = f".. literalinclude:: /reference/examples/{path.name}"
        lines += ["", f"Example{model}:", "", shown, ""]


def add_other_addresses(app, env):
    """Enters `tensorpack.NAME` and the addresses of re-exports into the index of objects.

    A public name that is not in the index then is a warning, which ends `make docs`.
    """
    from sphinx.util.logging import getLogger  # the rest of this module needs no Sphinx

    objects = env.domains["py"].data["objects"]
    documented, others = public_objects()
    others.update((f"tensorpack.{name}", f"tensorpack.{HOMES[name]}.{name}") for name in HOMES)
    for other, name in others.items():
        entry = objects.get(others.get(name, name))
        if entry is not None and other not in objects:
            objects[other] = entry._replace(aliased=True)
    names = {f"{address}.{name}" for address, found in documented.items() for name in found}
    for name in sorted((names | set(others)) - set(objects)):
        getLogger(__name__).warning("the reference has no entry for %s", name, type="reference")


def list_pages(app, name, content):
    content[0] = content[0].replace("<!-- the pages by section -->", contents())


def setup(app):
    entries = _Entries()
    app.connect("source-read", list_pages)
    app.connect("builder-inited", write)
    app.connect("autodoc-skip-member", entries.skip)
    app.connect("autodoc-process-bases", entries.bases)
    app.connect("autodoc-process-docstring", entries.example, priority=700)  # after napoleon
    app.connect("env-updated", add_other_addresses)
    return {"parallel_read_safe": True}
