"""The sample settings in etc/."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.keyed import KeyedOptions
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.config.properties import parse, read

ETC = Path(__file__).resolve().parent.parent.parent / "etc"

#: Values that stand for what depends on the machine.
EXAMPLES = ("(", "/var/lib/")


class SampleTests(SynchronousTestCase):
    """What the samples say is true."""

    def check(
        self, name: str, unknown: dict[str, str], parts: list[KeyedOptions]
    ) -> None:
        """Each key that is commented out is known, and shows its default."""
        self.assertEqual(unknown, {})
        defaults: dict[str, str] = {}
        for part in parts:
            defaults = {**part.as_properties(), **defaults}
        text = (ETC / name).read_text("ascii")
        shown = parse("\n".join(re.findall(r"^#(\w+=.*)$", text, re.M)))
        self.assertGreater(len(shown), 10)
        for key, value in shown.items():
            if not value.startswith(EXAMPLES) and key != "namesrvAddr":
                self.assertEqual(value, defaults[key], key)
            elif key != "namesrvAddr":
                self.assertIn(key, defaults)

    def test_namesrv(self) -> None:
        """The name server's."""
        settings = NamesrvSettings.from_properties(
            read(str(ETC / "namesrv.properties"))
        )
        self.check(
            "namesrv.properties",
            dict(settings.unknown),
            [settings.options, settings.server],
        )

    def test_broker(self) -> None:
        """The broker's."""
        settings = BrokerSettings.from_properties(read(str(ETC / "broker.properties")))
        self.check(
            "broker.properties",
            dict(settings.unknown),
            [settings.server, settings.broker, settings.store],
        )
