"""Writes a page of the API reference for each package, and for each module with names of its own.

An object is documented once, under its shortest public address; its other addresses lead there.
The pages are written to `docs/reference/api` when a build starts, from the `__all__` of the
packages, so no public name can be forgotten.
"""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

from tensorpack._public_names import HOMES, MODULES

from .docstrings import rewrite

FOLDER = Path(__file__).resolve().parent.parent / "reference" / "api"


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
                continue  # it has a page of its own
            known = where.setdefault((name, id(thing)), f"{address}.{name}")
            if known == f"{address}.{name}":
                documented[address][name] = thing
            else:
                others[f"{address}.{name}"] = known
    return {address: names for address, names in documented.items() if names}, others


def page(address, names, modules=()):
    """The text of the page of an address.

    Args:
      address: dotted name of a package or module.
      names: {name: object} of what is documented there.
      modules: the modules of this package that have pages of their own.
    """
    lines = [
        f"{address}\n{'=' * len(address)}",
        f".. highlight:: python\n\n.. py:module:: {address}",
    ]
    lines.append(_docstring(importlib.import_module(address)))
    entries = "".join(f"   {name.rpartition('.')[2]} <{file_of(name)}>\n" for name in modules)
    if modules:
        lines += [
            "Modules of this package with names of their own:",
            "\n".join(f"- :doc:`{name} <{file_of(name)}>`" for name in modules),
            f".. toctree::\n   :hidden:\n\n{entries}",
        ]
    lines.append(_summary(names))
    groups = {}
    for name, thing in names.items():
        groups.setdefault(_defining_module(thing, address), []).append(name)
    for home, members in groups.items():
        title = _first_sentence(importlib.import_module(home)).rstrip(".")
        if len(groups) > 1:
            lines.append(f"{title}\n{'-' * len(title)}")
        lines += [_entry(address, name, names[name]) for name in members]
    return "\n\n".join(lines) + "\n"


def file_of(address):
    """Where the page of an address lies, as a name of a document without its folder."""
    return "/".join(["", "reference", "api", *address.split(".")[1:]])


def _defining_module(thing, address):
    home = getattr(thing, "__module__", None) or address
    return home if home.startswith("tensorpack") else address


def _docstring(thing):
    return "\n".join(rewrite((inspect.getdoc(thing) or "").split("\n")))


def _first_sentence(thing):
    text = " ".join(_docstring(thing).split("\n\n")[0].split())
    sentence = re.match(r"(?:``.*?``|[^`])*?(?:\.(?=\s)|$)", text)
    return re.sub(r"::?$", ".", sentence.group() if sentence else text)


def _summary(names):
    rows = ""
    for name, thing in names.items():
        what = _first_sentence(thing)
        if isinstance(thing, (int, str)):
            what = f"The constant ``{thing!r}``."
        elif _is_other_name(name, thing):
            what = f"Another name of ``{thing.__name__}``."
        rows += f"   * - :py:obj:`{name}`\n     - {what}\n"
    return f".. list-table::\n   :class: names\n   :widths: 30 70\n\n{rows}"


def _is_other_name(name, thing):
    return inspect.isclass(thing) and thing.__name__ != name


def _entry(address, name, thing):
    full = f"{address}.{name}"
    if inspect.isclass(thing):
        return f".. autoclass:: {full}"
    if isinstance(thing, ModuleType):
        return f".. autodata:: {full}\n   :no-value:"
    return f".. autofunction:: {full}" if callable(thing) else f".. autodata:: {full}"


def write(app):
    documented, _ = public_objects()
    packages = set(HOMES.values())
    texts = {}
    for address, names in documented.items():
        modules = [each for each in documented if each.startswith(address + ".")]
        is_package = address.rpartition(".")[2] in packages and address.count(".") == 1
        path = FOLDER.parent.parent / (file_of(address)[1:] + ".rst")
        texts[path] = page(address, names, modules if is_package else ())
    for path in set(FOLDER.rglob("*.rst")) - set(texts):
        path.unlink()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


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


def setup(app):
    app.connect("builder-inited", write)
    app.connect("env-updated", add_other_addresses)
    return {"parallel_read_safe": True}
