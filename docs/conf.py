"""How Sphinx makes the site: `make docs`, or `sphinx-build -W docs site`. Why Sphinx:
decisions/0001-tools.md.
"""

import gc
from importlib.metadata import version as version_of

# A build keeps what it makes until it ends: looking for garbage took a third of its time.
gc.disable()

project = "suffice"
author = "the people who build suffice"
version = release = version_of("suffice")
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
html_theme = "furo"  # fonts of the reader's system, nothing from elsewhere
html_title = "suffice"
html_favicon = "../src/suffice/service/page/mark.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
