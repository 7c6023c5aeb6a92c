"""Docstrings as the library writes them, turned into what Sphinx reads.

Single backticks are code whatever they hold and whatever follows; `a, b: text` under `Args:` or
`Attributes:` is an entry for each name; `Raises (while iterating):` is `Raises:`; a property has no
type before a colon; that nothing is returned, or inherited, is not said.
"""

import re

_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)(?=(\w)?)")
_SECTION = re.compile(r"(\s*)(Args|Attributes):$")
_ENTRY = re.compile(r"(\s+)(\*{0,2}\w+(?:, \*{0,2}\w+)+): (.+)$")


def rewrite(lines):
    """The lines of a docstring, without common indentation, in the form that napoleon expects."""
    text = "\n".join(_entries_for_each_name(lines)).replace("Raises (while iterating):", "Raises:")
    return _CODE.sub(_as_literal, text).split("\n")


def _as_literal(code):
    end = "\\ " if code.group(2) else ""  # reStructuredText wants it before a letter
    return f"``{code.group(1).strip()}``{end}"


def _entries_for_each_name(lines):
    done, section, at = [], None, 0
    while at < len(lines):
        line = lines[at]
        begins = _SECTION.match(line)
        indent = len(line) - len(line.lstrip())
        if begins:
            section = len(begins.group(1))
        elif line.strip() and section is not None and indent <= section:
            section = None
        entry = _ENTRY.match(line) if section is not None else None
        at += 1
        if not entry:
            done.append(line)
            continue
        rest = []
        while at < len(lines) and lines[at].startswith(entry.group(1) + " "):
            rest.append(lines[at])
            at += 1
        for name in entry.group(2).split(", "):
            done += [f"{entry.group(1)}{name}: {entry.group(3)}", *rest]
    return done


def leave_out_none(app, domain, kind, content):
    """Takes "Return type: None" and "Bases: object" out of the description of an object."""
    for base in [each for each in content.children if each.astext() == "Bases: object"]:
        content.remove(base)
    for fields in list(content.findall(lambda node: node.tagname == "field_list")):
        for field in list(fields):
            if [part.astext() for part in field] == ["rtype", "None"]:
                fields.remove(field)
        if not fields.children:
            fields.parent.remove(fields)


def setup(app):
    properties = {}

    def before_napoleon(app, what, name, thing, options, lines):
        lines[:] = rewrite(lines)
        if what == "property" and not any(line.endswith(":") for line in lines):
            properties[name] = list(lines)

    def after_napoleon(app, what, name, thing, options, lines):
        lines[:] = properties.pop(name, lines)

    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
    app.connect("object-description-transform", leave_out_none, priority=600)  # types are in
    return {"parallel_read_safe": True}
