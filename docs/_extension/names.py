"""Links inline code that is a public name, or the path of a module, to the reference."""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from tensorpack._public_names import HOMES

# A word such as `accuracy` is more often a tensor than our function, so it is left alone.
_NAME = re.compile(r"(?:tensorpack\.)?(\w*[A-Z_]\w*)(?:\(\))?")


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


def setup(app):
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True}
