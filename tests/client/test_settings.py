"""Settings of clients."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.options import client_settings
from rocketbroker.client.settings import (
    ClientSettings,
    ConsumerSettings,
    ProducerSettings,
    name_servers,
)
from rocketbroker.errors import ConfigurationError


class NameServerTests(SynchronousTestCase):
    """Where name servers are."""

    def test_givenAddressesAreTaken(self) -> None:
        """One, several, a list; with C{http://} before them, as Java's."""
        self.assertEqual(name_servers("a:1", {}), ("a:1",))
        self.assertEqual(name_servers(" a:1; b:2,", {}), ("a:1", "b:2"))
        self.assertEqual(name_servers(["a:1", "b:2;a:1"], {}), ("a:1", "b:2"))
        self.assertEqual(name_servers("http://a:1/", {}), ("a:1",))
        self.assertEqual(name_servers("rocketmq://a:1;b:2", {}), ("a:1", "b:2"))
        self.assertEqual(name_servers("[::1]:9876", {}), ("[::1]:9876",))

    def test_environmentIsAskedNext(self) -> None:
        """Without an address: the variable, and without that this machine."""
        self.assertEqual(name_servers(None, {"ROCKETMQ_NAMESRV": "a:1"}), ("a:1",))
        self.assertEqual(name_servers(None, {"ROCKETMQ_NAMESRV": ""})[0][-5:], ":9876")
        self.assertEqual(name_servers("b:2", {"ROCKETMQ_NAMESRV": "a:1"}), ("b:2",))

    def test_anythingElseIsOneSentence(self) -> None:
        """What cannot be an address is refused before anything is opened."""
        wrong: list[Any] = ["", [], "a", "a:x", [5], ";", 5, b"a:1", "a:1 b:2"]
        for given in wrong:
            self.assertRaises(ConfigurationError, name_servers, given, {})


class MappingTests(SynchronousTestCase):
    """Options from a file, and from the environment."""

    def given(
        self,
        environment: dict[str, str] | None = None,
        servers: str | None = None,
        **options: Any,
    ) -> tuple[ClientSettings, ProducerSettings]:
        """What C{connect} takes them for."""
        return client_settings(servers, options, environment or {})

    def test_textsAreRead(self) -> None:
        """By the type of the option; other values are taken as they are."""
        client, producer = self.given(
            settings={
                "name_servers": "a:1;b:2",
                "patience": "7.5",
                "unit_name": "u",
                "attempts": "5",
                "avoid_slow": "Yes",
                "retry_unsafe": True,
                "trace": "Traces",
            }
        )
        self.assertEqual(client.trace, "Traces")
        self.assertIs(self.given({"ROCKETMQ_CLIENT_TRACE": "on"})[0].trace, True)
        self.assertEqual(client.name_servers, ("a:1", "b:2"))
        self.assertEqual((client.patience, client.unit_name), (7.5, "u"))
        self.assertEqual((producer.attempts, producer.avoid_slow), (5, True))
        self.assertTrue(producer.retry_unsafe)

    def test_nameCountsMoreThanMappingAndThatMoreThanEnvironment(self) -> None:
        """Each option by itself; variables of others are left alone."""
        environment = {
            "ROCKETMQ_CLIENT_ATTEMPTS": "2",
            "ROCKETMQ_CLIENT_PATIENCE": "2",
            "ROCKETMQ_CLIENT_SECONDS": "2",
            "ROCKETMQ_CLIENT_GROUP": "",
            "ROCKETMQ_CLIENT_LOG_ROOT": "/tmp",
            "ROCKETMQ_NAMESRV": "c:3",
        }
        settings = {"patience": "3", "seconds": "3", "name_servers": ["b:2"]}
        client, producer = self.given(environment, settings=settings, seconds=4)
        self.assertEqual((client.seconds, client.patience), (4, 3.0))
        self.assertEqual((producer.attempts, client.name_servers), (2, ("b:2",)))
        client, _ = self.given(environment, "a:1", settings=settings)
        self.assertEqual(client.name_servers, ("a:1",))
        self.assertEqual(self.given(environment)[0].name_servers, ("c:3",))

    def test_anythingElseIsOneSentence(self) -> None:
        """It names the option, or the variable."""
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("patience", {"settings": {"patience": "long"}}),
            ("patiance", {"settings": {"patiance": "5"}}),
            ("attempts", {"settings": {"attempts": "1.5"}}),
            ("mapping", {"settings": ["patience"]}),
            (
                "ROCKETMQ_CLIENT_AVOID_SLOW",
                {"environment": {"ROCKETMQ_CLIENT_AVOID_SLOW": "perhaps"}},
            ),
        ]
        for words, options in wrong:
            with self.assertRaisesRegex(ConfigurationError, words):
                self.given(**options)


class ValueTests(SynchronousTestCase):
    """Values that cannot work are refused."""

    def test_numbersHaveToBePositive(self) -> None:
        """Zero seconds and minus one message are mistakes."""
        wrong: list[tuple[Any, dict[str, Any]]] = [
            (ClientSettings, {"seconds": 0}),
            (ClientSettings, {"patience": "2"}),
            (ProducerSettings, {"attempts": -1}),
            (ProducerSettings, {"compress_over": -1}),
            (ConsumerSettings, {"group": "g", "prefetch": True}),
        ]
        for kind, values in wrong:
            with self.assertRaises(ConfigurationError):
                kind(**values)

    def test_groupNeedsAName(self) -> None:
        """Of letters that brokers take."""
        wrong: list[Any] = ["", "a b", None, 5, "x" * 256]
        for group in wrong:
            with self.assertRaises(ConfigurationError):
                ConsumerSettings(group=group)

    def test_startIsATimeOrAWord(self) -> None:
        """Anything else is refused, and so is order without sharing."""
        ConsumerSettings(group="g", start=1_700_000_000.5)
        wrong: list[dict[str, Any]] = [
            {"start": "first"},
            {"start": -1},
            {"start": None},
            {"ordered": True, "broadcast": True},
        ]
        for values in wrong:
            with self.assertRaises(ConfigurationError):
                ConsumerSettings(group="g", **values)

    def test_attemptsDependOnOrder(self) -> None:
        """16 as in Java, and without end where order has to be kept."""
        self.assertEqual(ConsumerSettings(group="g").attempts_allowed, 16)
        ordered = ConsumerSettings(group="g", ordered=True)
        self.assertEqual(ordered.attempts_allowed, 2**31 - 1)
        self.assertEqual(
            ConsumerSettings(group="g", max_attempts=3).attempts_allowed, 3
        )
