"""The page of the client's options."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.options import client_settings, consumer_settings
from rocketbroker.client.options_page import (
    JAVA_NAMES,
    SECTIONS,
    options_page,
    rows,
)
from rocketbroker.errors import ConfigurationError
from scripts.lab.servers import ROOT

#: Settings that are no options: they have arguments of their own.
ARGUMENTS = {"name_servers", "group"}


class PageTests(SynchronousTestCase):
    """C{docs/client-options.rst}."""

    def test_pageIsMadeOfTheSettings(self) -> None:
        """C{python3 -m rocketbroker.client.options_page > docs/client-options.rst}."""
        written = (ROOT / "docs" / "client-options.rst").read_text("utf-8")
        self.assertEqual(written, options_page())

    def test_eachSettingIsAnOptionWithAMeaning(self) -> None:
        """What the types of the options name is what the settings take."""
        for section in SECTIONS:
            named = set(section.options.__annotations__)
            known = {
                field.name for each in section.settings for field in attrs.fields(each)
            }
            self.assertLessEqual(known - named, ARGUMENTS)
            for name, _, _, meaning in rows(section):
                self.assertGreater(len(meaning.split()), 2, name)

    def test_eachOptionIsTaken(self) -> None:
        """The calls know each name of the page: they name all where they refuse one."""
        connect, consumer = SECTIONS
        for name in connect.options.__annotations__:
            self.assertIn(name, self.refusal(client_settings, None, {"x": 1}, {}))
        for name in consumer.options.__annotations__:
            self.assertIn(name, self.refusal(consumer_settings, "G", {"x": 1}))

    def test_namesOfJavaBelongToOptions(self) -> None:
        """None stands there for an option that has gone."""
        named = {name for each in SECTIONS for name in each.options.__annotations__}
        self.assertLessEqual(set(JAVA_NAMES), named)

    def refusal(self, function: Any, *arguments: Any) -> str:
        """The sentence that says why it refuses something."""
        return str(self.assertRaises(ConfigurationError, function, *arguments))
