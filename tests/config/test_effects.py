"""Settings and the code that reads them."""

from __future__ import annotations

import ast
from pathlib import Path

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.effects import (
    REFUSED_KEYS,
    SHARED_KEYS,
    ignored,
    keys_without_effect,
)
from rocketbroker.config.settings_page import SECTIONS

ROOT = Path(__file__).resolve().parent.parent.parent


def attributes_read() -> set[str]:
    """The names of all attributes that the code outside config/ reads.

    Of config/ only the modules count that tie options together. The proxy has settings
    of its own, of the same names.
    """
    package = ROOT / "rocketbroker"
    return {
        node.attr
        for path in package.rglob("*.py")
        if path.parent.name not in ("config", "proxy")
        or path.name in ("broker_settings.py", "tls.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


class EffectTests(SynchronousTestCase):
    """Which settings have an effect."""

    def test_read(self) -> None:
        """A setting with a meaning is read by some code; one without is not."""
        read = attributes_read()
        for _, options in SECTIONS:
            for key, name in options.keys().items():
                if name in options.ABOUT:
                    self.assertIn(name, read, f"nothing reads {key}: no ABOUT for it")
                elif key not in REFUSED_KEYS | SHARED_KEYS:
                    self.assertNotIn(name, read, f"{key} is read: it needs an ABOUT")

    def test_units(self) -> None:
        """Units belong to numbers with a meaning, and not to their descriptions."""
        for _, options in SECTIONS:
            fields = attrs.fields_dict(options)  # type: ignore[arg-type]
            for name in options.UNITS:
                self.assertIn(name, options.ABOUT)
                self.assertIn(fields[name].type, ("int", "float"))

    def test_ignored(self) -> None:
        """A setting without effect is named if it differs from the default."""
        self.assertIn("isolateLogEnable", keys_without_effect(BrokerOptions))
        options = BrokerOptions(isolate_log_enable=True, region_id="x", acl_enable=True)
        given = ["isolateLogEnable", "regionId", "aclEnable", "highSpeedMode"]
        self.assertEqual(ignored(given, [options]), ["isolateLogEnable"])
        self.assertEqual(ignored([], [options]), [])
