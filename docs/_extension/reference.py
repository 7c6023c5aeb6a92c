"""Writes a page of the API reference for each package, and for each module with names of its own.

An object is documented once, under its shortest public address; its other addresses lead there.
The pages are written to `docs/reference/api` when a build starts, from the `__all__` of the
packages, so no public name can be forgotten.
"""

import importlib
import inspect
from pathlib import Path
from types import ModuleType

from tensorpack._public_names import HOMES, MODULES

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
            known = where.setdefault((name, id(thing)), f"{address}.{name}")
            if known == f"{address}.{name}":
                documented[address][name] = thing
            else:
                others[f"{address}.{name}"] = known
    return {address: names for address, names in documented.items() if names}, others


def page(address, names):
    """The text of the page of an address."""
    module = importlib.import_module(address)
    lines = [f"{address}\n{'=' * len(address)}", inspect.getdoc(module) or ""]
    lines.append(f".. currentmodule:: {address}")
    rows = "".join(f"   {name}\n" for name in names)
    lines.append(f".. autosummary::\n   :nosignatures:\n\n{rows}")
    groups = {}
    for name, thing in names.items():
        groups.setdefault(_defining_module(thing, address), []).append(name)
    for home, members in groups.items():
        title = _first_sentence(importlib.import_module(home))
        if len(groups) > 1:
            lines.append(f"{title}\n{'-' * len(title)}")
        lines += [_entry(address, name, names[name]) for name in members]
    return "\n\n".join(lines) + "\n"


def _defining_module(thing, address):
    home = getattr(thing, "__module__", None) or address
    return home if home.startswith("tensorpack") else address


def _first_sentence(module):
    doc = inspect.getdoc(module) or module.__name__
    return " ".join(doc.split("\n\n")[0].split()).rstrip(".")


def _entry(address, name, thing):
    full = f"{address}.{name}"
    if inspect.isclass(thing):
        return f".. autoclass:: {full}"
    if isinstance(thing, ModuleType):
        return f".. autodata:: {full}\n   :no-value:"
    return f".. autofunction:: {full}" if callable(thing) else f".. autodata:: {full}"


def write(app):
    FOLDER.mkdir(exist_ok=True)
    documented, _ = public_objects()
    texts = {
        FOLDER / f"{address}.rst": page(address, documented[address]) for address in documented
    }
    for path in set(FOLDER.glob("*.rst")) - set(texts):
        path.unlink()
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def add_other_addresses(app, env):
    """Enters `tensorpack.NAME` and the addresses of re-exports into the index of objects."""
    objects = env.domains["py"].data["objects"]
    _, others = public_objects()
    others.update(
        {f"tensorpack.{name}": f"tensorpack.{home}.{name}" for name, home in HOMES.items()}
    )
    for other, name in others.items():
        entry = objects.get(others.get(name, name))
        if entry is not None and other not in objects:
            objects[other] = entry._replace(aliased=True)


def setup(app):
    app.connect("builder-inited", write)
    app.connect("env-updated", add_other_addresses)
    return {"parallel_read_safe": True}
