"""Sphinx's settings. Nothing comes from another host: no fonts, no scripts, no inventories."""

from __future__ import annotations

from headrace import __version__

project = "Headrace"
version = ".".join(__version__.split(".")[:2])
release = __version__
author = "the authors of Headrace"
project_copyright = author

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
root_doc = "index"
highlight_language = "text"
smartquotes = False  # `--option` keeps both of its hyphens
myst_heading_anchors = 4  # the anchors that a code host makes, so that links with fragments work on both
default_role = "code"  # docstrings quote code as Markdown does

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
add_module_names = False

html_theme = "furo"
html_title = f"Headrace {version}"
html_short_title = "Headrace"
html_static_path = ["static"]
html_css_files = ["headrace.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
pygments_style = "tango"
pygments_dark_style = "github-dark"
