"""Settings of a broker, shown and changed on request."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.properties import parse
from rocketbroker.errors import BrokerError
from rocketbroker.wire.fastjson import loads
from tests.broker.callers import Caller
from tests.broker.rig import WALL_MS, Rig, answered, logged

PATH = "/store/config/broker.properties"


class BrokerConfigTests(SynchronousTestCase):
    """Requests 25 and 26."""

    def setUp(self) -> None:
        """A broker without a file of settings."""
        self.rig = self.make()

    def make(self, threads: bool = False, client: Caller | None = None) -> Rig:
        """A broker."""
        settings = {"namesrvAddr": "n:9876"} if client else {}
        rig = Rig(settings, threads, client=client)
        self.addCleanup(rig.close)
        return rig

    def shown(self) -> dict[str, str]:
        """What 26 answers."""
        return parse(self.rig.ask(26, {}).body.decode("utf-8"))

    def refusal(self, body: bytes) -> tuple[int, str]:
        """Code and remark of a change that is refused."""
        error = self.assertRaises(BrokerError, self.rig.ask, 25, {}, body)
        return error.code, str(error)

    def version(self) -> object:
        """The version in the header of 26."""
        return loads((self.rig.ask(26, {}).ext or {})["version"].encode())

    def test_update(self) -> None:
        """A change is in force, shown with a new version, and in the file."""
        before = self.shown()
        first = self.version()
        self.rig.clock.advance(5)
        answer = self.rig.ask(25, {}, b"brokerPermission=4\nregionId=north\n")
        self.assertEqual((answer.code, answer.remark), (0, None))
        self.assertEqual(self.rig.broker.settings.broker.broker_permission, 4)
        after = {**before, "brokerPermission": "4", "regionId": "north"}
        self.assertEqual(self.shown(), after)
        self.assertEqual(
            (first, self.version()),
            (
                {"counter": 0, "stateVersion": 0, "timestamp": WALL_MS},
                {"counter": 1, "stateVersion": 0, "timestamp": WALL_MS + 5000},
            ),
        )
        self.assertEqual(
            self.rig.disk.read(PATH), b"brokerPermission=4\nregionId=north\n"
        )

    def test_secondChange(self) -> None:
        """The file keeps what else stands in it, and a copy."""
        self.rig.change(brokerPermission=4)
        file = self.rig.disk.open(PATH)
        file.truncate(0)
        file.pwrite(b"# by hand\nbrokerPermission=2\ncolor=blue\n", 0)
        file.close()
        self.rig.change(regionId="north", brokerPermission=6)
        self.assertEqual(
            self.rig.disk.read(PATH),
            b"# by hand\nbrokerPermission=6\ncolor=blue\nregionId=north\n",
        )
        self.assertIn(b"brokerPermission=2", self.rig.disk.read(PATH + ".bak"))

    def test_ownFile(self) -> None:
        """With a file of C{-c} that one is changed."""
        settings = self.rig.settings
        self.assertEqual(settings.changes_path(), PATH)
        named = type(settings).from_properties({}, "/etc/b.properties")
        self.assertEqual(named.changes_path(), "/etc/b.properties")

    def test_logged(self) -> None:
        """The log says who changed what, where it is kept, and what has no effect."""
        lines = logged(
            lambda: self.rig.ask(
                25,
                {},
                b"brokerPermission=4\ncommercialBaseCount=7\nregionId=DefaultRegion",
            )
        )
        self.assertEqual(
            lines,
            [
                "These settings have no effect here: commercialBaseCount "
                "(docs/settings.rst).",
                "10.0.0.2:4711 changed settings: brokerPermission=4 (was 6), "
                f"commercialBaseCount=7 (was 1); kept in {PATH}.",
            ],
        )

    def test_nothing(self) -> None:
        """No body is a success that changes nothing."""
        self.assertEqual(self.rig.ask(25, {}).code, 0)
        self.assertFalse(self.rig.disk.exists(PATH))

    def test_refused(self) -> None:
        """A change that is refused leaves settings and file as they are."""
        before = self.shown()
        for body, code in (
            (b"brokerPermission=4\nlistenPort=1", 16),
            (b"brokerPermission=4\nrocketmqHome=/evil", 16),
            (b"brokerPermission=4\nbrokerConfigPath=/evil", 16),
            (b"brokerPermission=4\nno=1", 16),
            (b"brokerPermission=4\nlongPollingEnable=x", 1),
            (b"brokerPermission=4\na=\\u12", 1),
            (b"brokerPermission=4\na=\xff", 1),
        ):
            self.assertEqual(self.refusal(body)[0], code, body)
        self.assertEqual(self.shown(), before)
        self.assertFalse(self.rig.disk.exists(PATH))

    def test_filterServer(self) -> None:
        """The requests of CVE-2023-33246 and CVE-2023-37582 change nothing, and make
        no file."""
        paths = self.rig.disk.paths()
        for body in (
            b"filterServerNums=1\nrocketmqHome=-c $@|sh . echo evil;",
            b"brokerConfigPath=/etc/shadow\nregionId=ssh-rsa",
            b"configStorePath=/etc/shadow\nregionId=ssh-rsa",
            b"storePathRootDir=/evil",
            b"storePathCommitLog=/evil",
            b"regionId=a\\nbrokerConfigPath=/evil",
        ):
            self.refusal(body)
        self.assertEqual(self.rig.disk.paths(), paths)

    def test_diskFull(self) -> None:
        """A change that cannot be kept is in force, and answer and log say so."""
        self.rig.disk.fail("pwrite", errno.ENOSPC)
        refusals: list[tuple[int, str]] = []
        lines = logged(lambda: refusals.append(self.refusal(b"brokerPermission=4")))
        self.assertEqual(
            refusals,
            [
                (
                    1,
                    "The change is in force but could not be saved: "
                    "No space left on device.",
                )
            ],
        )
        self.assertIn("is lost with the next start", lines[-1])
        self.assertEqual(self.rig.broker.settings.broker.broker_permission, 4)

    def test_malformedFile(self) -> None:
        """A file that makes no sense any more is not touched."""
        self.rig.change(brokerPermission=4)
        file = self.rig.disk.open(PATH)
        file.pwrite(b"\\u12=1\n", 0)
        file.close()
        before = self.rig.disk.read(PATH)
        code, remark = self.refusal(b"brokerPermission=6")
        self.assertEqual(code, 1)
        self.assertIn(f"{PATH}, line 1", remark)
        self.assertEqual(self.rig.disk.read(PATH), before)

    def test_order(self) -> None:
        """Changes that come together are all in the file, the last one last."""
        rig = self.rig = self.make(threads=True)
        answers = [
            rig.begin(25, {}, b"brokerPermission=%d\n" % number) for number in (2, 4, 6)
        ]
        answers.append(rig.begin(25, {}, b"regionId=north\n"))
        while rig.threads.waiting:
            rig.threads.run()
        for answer in answers:
            self.assertEqual(answered(answer).code, 0)
        self.assertEqual(rig.disk.read(PATH), b"brokerPermission=6\nregionId=north\n")
