"""The description of each page for search engines: its first paragraph."""

import html

from docutils import nodes
from sphinx import addnodes

_LONGEST = 160  # characters; what is behind them is not shown


def description(doctree):
    """The first paragraph of a page, or of a page of the reference the first of its names."""
    entries = [each for each in doctree.findall(addnodes.desc_signature) if not each.get("class")]
    names = [each.next_node(addnodes.desc_name).astext() for each in entries][:8]
    if names:
        text = f"{doctree.next_node(nodes.title).astext()} in tensorpack: {', '.join(names)}"
    else:
        text = next((each.astext() for each in doctree.findall(nodes.paragraph)), "")
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[:_LONGEST].rpartition(" ")[0] + " ..."


def add_description(app, name, template, context, doctree):
    if doctree is not None:
        content = html.escape(description(doctree))
        context["metatags"] += f'\n<meta name="description" content="{content}">'


def setup(app):
    app.connect("html-page-context", add_description)
    return {"parallel_read_safe": True}
