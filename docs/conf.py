"""Settings of the site that `make docs` builds from this folder, without the network."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from tensorpack import __version__

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

project = "tensorpack"
author = "the tensorpack contributors"
copyright = "the tensorpack contributors"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "_extension.docstrings",
    "_extension.pages",
    "_extension.reference",
    "_extension.names",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# The sidebar. A pattern takes every page that no earlier entry has taken, in order of file name.
navigation = {
    "Getting started": ["quickstart", "examples/index", "examples/*", "migration"],
    "Tutorials": ["tutorials/index", "tutorials/your-images", "tutorials/0*", "tutorials/*"],
    "How-to": ["howto/index", "howto/*"],
    "Reference": ["reference/index", "command", "glossary", "reference/api/*"],
    "Design": [
        *["design/map", "design/layers", "design/run", "design/threads", "design/tests"],
        "design/*",
    ],
    "Project": ["comparison", "project/*"],
    "Guides": [
        *["models", "trainers", "callbacks", "validation", "precision"],
        *["dataflow", "augmentors", "datasets", "inputs"],
        *["runs", "resuming", "weights", "predicting", "errors", "reliability"],
        *["distributed", "launching", "scaling", "learning", "performance", "profiling", "*"],
    ],
}
navigation_order = [
    "Getting started",
    "Tutorials",
    "How-to",
    "Guides",
    "Reference",
    "Design",
    "Project",
]

# Markdown: headings have the anchors that a Git host gives them.
myst_heading_anchors = 4

# Docstrings: Google's sections; types stand beside the arguments.
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autoclass_content = "both"
autodoc_inherit_docstrings = False  # a contract is described once, where it is
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_default_options = {
    "members": True,
    "special-members": "__call__, __getitem__, __iter__, __len__",
    "show-inheritance": True,
}
napoleon_use_ivar = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# Types of others, and of ours that are not public, are named without a link.
nitpick_ignore_regex = [
    ("py:class", r".*\w\.\w.*"),
    ("py:exc", "Dropped|NoValidCheckpoint|DamagedLMDB"),
]

highlight_language = "none"  # a block that names no language is output, or commands
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = f"tensorpack {version}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sphinx = False
html_copy_source = False
