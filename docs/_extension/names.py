"""Links inline code that is a public name, or the path of a module, to the reference.

The pages of sources link back as if every name of a module were documented at the address of the
first one; those links are corrected.
"""

import re
from importlib import import_module

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from tensorpack._public_names import HOMES

# A word such as `accuracy` is more often a tensor than our function, so it is left alone.
_NAME = re.compile(r"(?:tensorpack\.)?(\w*[A-Z_]\w*)(?:\(\))?")
_BACK = re.compile(
    r'(?<=id=")([^"]+)(">\s*<a class="viewcode-back" href="[^"#]*?([\w-]+)\.html#)([^"]+)'
)


class LinkNames(SphinxPostTransform):
    default_priority = 5  # before references are resolved

    def run(self, **options):
        for literal in list(self.document.findall(nodes.literal)):
            target = self._target(literal.astext())
            if target is None or _is_linked(literal):
                continue
            reference = addnodes.pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=target,
                refdoc=self.env.docname,
                refexplicit=True,
            )
            literal.replace_self(reference)
            reference += literal

    def _target(self, text):
        if text in self.env.domains["py"].data["modules"]:
            return text
        match = _NAME.fullmatch(text)
        if match is None or match.group(1) not in HOMES:
            return None
        return f"tensorpack.{HOMES[match.group(1)]}.{match.group(1)}"


def _is_linked(node):
    while node is not None:
        if isinstance(node, (nodes.reference, nodes.title, addnodes.pending_xref)):
            return True
        node = node.parent
    return False


def link_back(app, page, template, context, doctree):
    entries = app.env.domains["py"].data["objects"]

    def linked(match):
        name, link, shown_on, address = match.groups()
        entry = entries.get(address) or next(
            entry
            for each, entry in entries.items()
            if each.endswith(f".{name}") and entry.docname.endswith(f"/{shown_on}")
        )
        return f"{name}{link}{entry.node_id}"

    if page.startswith("_modules/"):
        context["body"] = _BACK.sub(linked, context["body"])


def follow(app, module, attribute):
    """Keeps the sources of other packages from the site; None leaves the search to Sphinx."""
    thing = import_module(module)
    for name in attribute.split("."):
        thing = getattr(thing, name, None)
    source = getattr(thing, "__module__", None) or "tensorpack"
    return None if source.startswith("tensorpack") else module


def setup(app):
    app.add_post_transform(LinkNames)
    app.connect("viewcode-follow-imported", follow)
    app.connect("html-page-context", link_back)
    return {"parallel_read_safe": True}
