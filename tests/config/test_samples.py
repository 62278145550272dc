"""The sample settings in etc/, and the units that use them."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.namesrv import NAMESRV_PORT, NamesrvSettings
from rocketbroker.config.properties import parse, read
from rocketbroker.proxy.settings import ProxySettings, settings_from

ROOT = Path(__file__).resolve().parent.parent.parent
ETC = ROOT / "etc"


def commented(name: str) -> dict[str, str]:
    """The settings in the lines of a sample that are commented out."""
    text = (ETC / name).read_text("ascii")
    return parse("\n".join(re.findall(r"^#[ ]*(\w+=.*)$", text, re.M)))


class SampleTests(SynchronousTestCase):
    """What the samples say is true, and they work as they stand."""

    def check(
        self,
        name: str,
        settings: type[BrokerSettings] | type[NamesrvSettings],
        active: dict[str, str],
    ) -> None:
        """Each key that is commented out is known, and shows its default.

        @param active: the settings of the other lines.
        """
        given, shown = read(str(ETC / name)), commented(name)
        self.assertEqual(given, active)
        self.assertEqual(set(given) & set(shown), set())
        self.assertGreater(len(shown), 10)
        standard = settings.from_properties({}).as_properties()
        same = settings.from_properties(shown)
        self.assertEqual(same.unknown, {})
        values = same.as_properties()
        for key in shown:
            self.assertEqual(values[key], standard[key], key)

    def test_namesrv(self) -> None:
        """The name server's."""
        self.check("namesrv.properties", NamesrvSettings, {})

    def test_broker(self) -> None:
        """The broker's registers with the name server's."""
        address = f"127.0.0.1:{NAMESRV_PORT}"
        self.check("broker.properties", BrokerSettings, {"namesrvAddr": address})
        settings = BrokerSettings.from_properties(read(str(ETC / "broker.properties")))
        self.assertTrue(settings.has_name_servers)

    def test_proxy(self) -> None:
        """The proxy's finds the name server's; what it says is known and a default."""
        settings, unused = settings_from((ETC / "rmq-proxy.json").read_text("ascii"))
        self.assertEqual(unused, [])
        address = f"127.0.0.1:{NAMESRV_PORT}"
        self.assertEqual(settings, ProxySettings(namesrv_addr=address))

    def test_proxyHasTheTimeToDrain(self) -> None:
        """The unit gives it more than it takes at the most."""
        unit = (ETC / "systemd" / "rocketbroker-proxy.service").read_text("ascii")
        (seconds,) = re.findall(r"TimeoutStopSec=(\d+)", unit)
        self.assertGreater(int(seconds), ProxySettings().grpc_shutdown_time_seconds)

    def test_proxysSocketHasItsPort(self) -> None:
        """The page says how it is enabled."""
        text = (ETC / "systemd" / "rocketbroker-proxy.socket").read_text("ascii")
        (port,) = re.findall(r"ListenStream=(\d+)", text)
        self.assertEqual(int(port), ProxySettings().grpc_server_port)
        page = (ROOT / "docs" / "proxy.rst").read_text("utf-8")
        self.assertIn("systemctl enable --now rocketbroker-proxy.socket", page)

    def test_unitsUseTheSamples(self) -> None:
        """What a unit reads is a sample, and the page says how it gets there."""
        page = (ROOT / "docs" / "operations.rst").read_text("utf-8")
        for unit, server, name in (
            ("rocketbroker", "rocketbroker", "broker.properties"),
            ("rocketbroker-namesrv", "namesrv", "namesrv.properties"),
            ("rocketbroker-proxy", "rocketmq-proxy", "rmq-proxy.json"),
        ):
            text = (ETC / "systemd" / f"{unit}.service").read_text("utf-8")
            self.assertIn(f" {server} -c /etc/rocketbroker/{name}\n", text)
            self.assertIn(f"etc/{name}", page)

    def test_readmeUsesTheSamples(self) -> None:
        """A command that names a settings file can be entered in a checkout."""
        text = (ROOT / "README.rst").read_text("utf-8")
        named = re.findall(r"(?:twistd|broker|namesrv) .*-c (\S+)", text)
        self.assertGreater(len(named), 1)
        for path in named:
            self.assertTrue((ROOT / path).is_file(), path)
