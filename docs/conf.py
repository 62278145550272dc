"""How Sphinx builds the pages of this folder: see scripts/docs.py.

Pages name one another as files of the checkout (``docs/settings.rst``), for those who
read them there; here such a name becomes a link. A name of no page is a warning, and
warnings are errors.
"""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

from sphinx.application import Sphinx

_SETTINGS = ConfigParser()
_SETTINGS.read(Path(__file__).resolve().parent.parent / "setup.cfg")

project = "rocketbroker"
author = "the authors of rocketbroker"
version = release = _SETTINGS["metadata"]["version"]

extensions = ["myst_parser"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
#: Fact sheets are cited by the numbers of their sections, not by their headings.
suppress_warnings = ["myst.header"]
html_theme = "alabaster"
html_theme_options = {"page_width": "72em", "sidebar_width": "16em"}
html_static_path: list[str] = []
html_show_sourcelink = False

_PAGE = re.compile(r"``docs/([\w/.-]+)\.(?:rst|md)``")


def _link(app: Sphinx, name: str, source: list[str]) -> None:
    """Make links of the names of other pages in a page's source."""
    if (Path(app.srcdir) / f"{name}.rst").exists():
        source[0] = _PAGE.sub(r":doc:`/\1`", source[0])


def setup(app: Sphinx) -> None:
    """Sphinx calls this before it reads the pages."""
    app.connect("source-read", _link)
