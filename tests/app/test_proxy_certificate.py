"""What the settings of a proxy ask for, and when a certificate is made."""

from __future__ import annotations

import asyncio
import ssl
import threading

from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.proxy_certificate import ProxyCertificate
from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.settings import ProxySettings


class Maker:
    """Makes certificates, as soon as it may.

    @ivar made: how many it has begun.
    @ivar problem: what it fails with, if anything.
    """

    def __init__(self, may_make: bool = True) -> None:
        self.made = 0
        self.problem: Exception | None = None
        self.may_make = threading.Event()
        if may_make:
            self.may_make.set()

    def __call__(self) -> ssl.SSLContext:
        """Make one."""
        self.made += 1
        if not self.may_make.wait(20):
            raise AssertionError("nobody lets a certificate be made")
        if self.problem is not None:
            raise self.problem
        return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


class SettingsTests(SynchronousTestCase):
    """L{ProxyCertificate}, by settings."""

    def setUp(self) -> None:
        """Nothing is made yet."""
        self.make = Maker()

    def found(
        self, has_cryptography: bool = True, **settings: object
    ) -> ProxyCertificate:
        """A certificate by these settings."""
        given = ProxySettings(**settings)  # type: ignore[arg-type]
        return ProxyCertificate(given, lambda: has_cryptography, self.make)

    def context(self, found: ProxyCertificate) -> ssl.SSLContext | None:
        """What a handshake has."""
        return asyncio.run(found.context())

    def test_withoutCryptographyThereIsPlainTextOnly(self) -> None:
        """With one warning, which says what to do."""
        found = self.found(False)
        self.assertIsNone(self.context(found))
        assert found.warning is not None
        self.assertIn("pip install 'rocketbroker[tls]'", found.warning)

    def test_withoutCryptographyEnforcingServesNobody(self) -> None:
        """So the start is refused."""
        self.assertRaises(
            ConfigurationError, self.found, False, tls_server_mode="enforcing"
        )

    def test_disabledNeedsNone(self) -> None:
        """Nothing is made or read."""
        found = self.found(
            False,
            tls_server_mode="disabled",
            tls_test_mode_enable=False,
            tls_cert_path="/no",
        )
        self.assertEqual((self.context(found), found.warning), (None, None))

    def test_filesNeedBothNames(self) -> None:
        """And none of our own is made in their place."""
        problem = self.assertRaises(
            ConfigurationError,
            self.found,
            tls_test_mode_enable=False,
            tls_cert_path="a",
        )
        self.assertIn("both tlsCertPath and tlsKeyPath", str(problem))

    def test_filesInTestModeAreNotRead(self) -> None:
        """As in RocketMQ's Proxy; here that is said."""
        found = self.found(tls_cert_path="a", tls_key_path="b")
        self.assertIsNotNone(self.context(found))
        assert found.warning is not None
        self.assertIn("tlsTestModeEnable is true", found.warning)


class MakingTests(SynchronousTestCase):
    """When a certificate of the proxy's own is made."""

    def test_firstClientHasItMadeAndOthersWaitForTheSame(self) -> None:
        """Not before; and one that leaves meanwhile does not take it from them."""
        make = Maker(may_make=False)
        found = ProxyCertificate(ProxySettings(), lambda: True, make)
        self.assertEqual(make.made, 0)

        async def play() -> list[ssl.SSLContext | None]:
            first = asyncio.create_task(found.context())
            others = [asyncio.create_task(found.context()) for _ in "12"]
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.sleep(0)
            self.assertFalse(any(other.done() for other in others))
            make.may_make.set()
            return [*await asyncio.gather(*others), await found.context()]

        contexts = asyncio.run(play())
        self.assertEqual((len(set(contexts)), make.made), (1, 1))
        self.assertIsNotNone(contexts[0])

    def test_failureIsToldOnceAndTheNextClientTriesAgain(self) -> None:
        """Those who waited have none."""
        make = Maker()
        found = ProxyCertificate(ProxySettings(), lambda: True, make)

        async def play() -> list[ssl.SSLContext | None]:
            return [*await asyncio.gather(found.context(), found.context())]

        async def play_twice() -> None:
            for problem in (ConfigurationError("no"), OSError(28, "full")):
                make.problem = problem
                self.assertEqual(await play(), [None, None])
            make.problem = None
            self.assertNotIn(None, await play())

        with capturedLogs() as logged:
            asyncio.run(play_twice())
        self.assertEqual(
            [str(event["problem"]) for event in logged], ["no", "[Errno 28] full"]
        )
        self.assertEqual(make.made, 3)
