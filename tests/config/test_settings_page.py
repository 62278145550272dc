"""What the documentation says of settings."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.settings_page import SECTIONS, settings_page

ROOT = Path(__file__).resolve().parent.parent.parent


class PageTests(SynchronousTestCase):
    """C{docs/settings.rst}."""

    def test_current(self) -> None:
        """The file is what the options give; the command in the file makes it."""
        written = (ROOT / "docs" / "settings.rst").read_text("utf-8")
        self.assertEqual(written, settings_page())

    def test_everyKey(self) -> None:
        """Each known key stands in the page."""
        page = settings_page()
        for section in SECTIONS:
            for key in section.options.keys():  # noqa: SIM118
                self.assertIn(f"``{key}``", page)
