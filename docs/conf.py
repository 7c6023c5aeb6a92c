"""Settings of the site that `make docs` builds from this folder, without the network."""

import os
import sys
from pathlib import Path

import tomllib

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from _extension.reference import slug
from _extension.tasks import TASKS

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
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "_extension.docstrings",
    "_extension.pages",
    "_extension.reference",
    "_extension.names",
    "_extension.head",
    "_extension.words",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# The sidebar: page -> the pages below it. A pattern takes every page that no earlier one has taken,
# in order of file name. The numbered tutorials, A3C and pages for those who change the library are
# not in it: the page of their section links to them.
navigation = {
    "index": [
        *["quickstart", "tutorials/index", "guides", "examples/index"],
        *["reference/index", "project/index"],
    ],
    "quickstart": ["migration", "command"],
    "tutorials/index": ["tutorials/your-images", "tutorials/your-table", "tutorials/your-*"],
    "examples/index": ["examples/dqn"],
    "reference/index": [*[f"reference/api/{slug(title)}" for title in TASKS], "reference/api/*"],
    "project/index": [
        "comparison",
        "project/releases",
        "project/changelog",
        "project/contributing",
    ],
    "guides": [
        *["dataflow", "howto/data", "augmentors", "datasets"],
        *["models", "trainers", "howto/learning-rate", "callbacks", "validation", "precision"],
        *["runs", "resuming", "howto/debugging", "errors", "reliability"],
        *["weights", "predicting", "howto/serving", "distributed"],
        *["howto/reinforcement-learning", "learning", "profiling", "performance", "howto/*", "*"],
    ],
}
suppress_warnings = ["toc.not_included"]

# Markdown: headings have the anchors that a Git host gives them.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]  # {.cards}

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
html_use_index = html_domain_indices = False  # the search and the pages by task find names
html_title = "tensorpack"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = ["sidebar.js"]
html_favicon = "_static/favicon.svg"
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_show_sphinx = False
with open(Path(__file__).parent.parent / "pyproject.toml", "rb") as file:
    repository = tomllib.load(file)["project"].get("urls", {}).get("Repository")
if repository:
    html_theme_options = {
        "source_repository": repository,
        "source_branch": "main",
        "source_directory": "docs/",
    }
html_copy_source = False
