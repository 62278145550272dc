"""The filters of groups."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients import sql_filters
from rocketbroker.broker.clients.sql_compiler import (
    MAX_AT_ONCE,
    NotCompiled,
    SqlCompiler,
)
from rocketbroker.broker.clients.sql_filters import Filters
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.filtering import sql
from rocketbroker.filtering.sql import MAX_CHARACTERS
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.store.reads import MessageFilter
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.heartbeats import SubscriptionData
from rocketbroker.wire.fastjson import dumps, loads

DAY_MS = 86_400_000
PATH = "/config/consumerFilter.json"


class FilterCase(SynchronousTestCase):
    """A table that is empty, at 1000 ms."""

    def setUp(self) -> None:
        """No filters."""
        self.now = 1000
        self.disk = MemoryDisk()
        self.disk.make_dirs("/config")
        self.filters = self.make()

    def make(self, **options: object) -> Filters:
        """A table with those settings."""
        settings = BrokerOptions(**options)  # type: ignore[arg-type]
        file = JsonTable(self.disk, PATH, at_once, Clock())
        self.clock = Clock()
        self.compiler = SqlCompiler(Slices(self.clock))
        return Filters(settings, file, lambda: self.now, self.compiler)

    def register(
        self,
        expression: str,
        version: int = 1,
        group: str = "G",
        topic: str = "T",
        kind: str = "SQL92",
    ) -> sql_filters.Filter | None:
        """A heartbeat with one subscription; what is known then."""
        self.filters.register(
            group,
            [
                SubscriptionData(
                    topic=topic,
                    sub_string=expression,
                    sub_version=version,
                    expression_type=kind,
                )
            ],
        )
        return self.filters.get(topic, group)

    def wanted(self, topic: str = "T", group: str = "G") -> MessageFilter | None:
        """What a pull filters by."""
        found = self.filters.ready(topic, group)
        return None if found is None else found[1]

    def known(self, expression: str, version: int = 1) -> sql_filters.Filter:
        """The same, for what is taken."""
        found = self.register(expression, version)
        assert found is not None
        return found


class RegisterTests(FilterCase):
    """Filters of heartbeats."""

    def test_new(self) -> None:
        """A filter is born when its heartbeat comes, and filters."""
        found = self.known("a > 5", 7)
        self.assertEqual(
            (found.group, found.topic, found.kind, found.expression),
            ("G", "T", "SQL92", "a > 5"),
        )
        self.assertEqual((found.version, found.born_ms, found.dead_ms), (7, 1000, 0))
        wanted = self.wanted()
        assert wanted is not None and wanted.matches is not None
        self.assertTrue(wanted.matches(b"a\x016\x02"))
        self.assertFalse(wanted.matches(b"a\x014\x02"))
        self.assertFalse(wanted.matches(b"a\x01text\x02"))
        self.assertFalse(wanted.matches(b"\xff\xfe"))
        self.assertEqual(self.filters.all(), [found])

    def test_tags(self) -> None:
        """Tags make none, nor does nothing."""
        self.assertIsNone(self.register("a", kind="TAG"))
        self.assertIsNone(self.register(""))

    def test_sameExpression(self) -> None:
        """A newer version of the same expression is no new filter."""
        first = self.known("a > 5", 1)
        self.now = 2000
        second = self.known("a > 5", 2)
        self.assertIs(second, first)
        self.assertEqual((second.version, second.born_ms), (2, 1000))

    def test_otherExpression(self) -> None:
        """Another expression is born anew."""
        self.known("a > 5", 1)
        self.now = 2000
        found = self.known("a > 6", 2)
        self.assertEqual((found.expression, found.born_ms), ("a > 6", 2000))

    def test_older(self) -> None:
        """A filter that is not newer is not taken."""
        self.known("a > 5", 2)
        self.assertEqual(self.known("a > 6", 1).expression, "a > 5")
        self.assertEqual(self.known("a > 6", 2).expression, "a > 5")

    def test_senseless(self) -> None:
        """One that does not compile is none when a pull needs it, and takes the place
        of one that did; the next heartbeat does not bring it back."""
        self.register("senseless >")
        self.assertIsNone(self.wanted())
        self.assertEqual(self.filters.all(), [])
        self.known("a > 5", 2)
        self.assertIsNone(self.register("senseless >", 3))
        self.assertIsNone(self.register("a", 4, kind="XPATH"))
        self.assertIsNone(self.register("a = 1".ljust(MAX_CHARACTERS + 1), 5))
        self.assertEqual(self.filters.refused, 4)
        self.assertEqual(self.filters.all(), [])
        self.assertEqual(len(self.flushLoggedErrors()), 0)

    def test_notCompiledBeforeItIsNeeded(self) -> None:
        """A heartbeat compiles nothing, nor does a start; a pull compiles what it
        needs, once."""
        for topic in ("T", "U", "V"):
            self.register(f"lazy_{topic} > 5", topic=topic)
        self.filters.save()
        self.assertEqual(self.compiler.compiled, 0)
        self.filters = self.make()
        self.filters.load()
        self.assertEqual((len(self.filters.all()), self.compiler.compiled), (3, 0))
        for _ in range(2):
            self.assertIsNotNone(self.wanted("U"))
            self.assertIsNone(self.wanted("W"))
        self.assertEqual(self.compiler.compiled, 1)

    def test_longExpressionIsWaitedFor(self) -> None:
        """A pull waits for an expression that takes long, and finds it then."""
        self.register("long_one = 1".ljust(MAX_AT_ONCE + 1))
        error = self.assertRaises(NotCompiled, self.wanted)
        done = self.compiler.prepare(self, error.expression)
        self.clock.advance(0)
        self.successResultOf(done)
        self.assertIsNotNone(self.wanted())
        self.assertEqual(self.compiler.compiled, 1)

    def test_loggedOnce(self) -> None:
        """The log says so once while the group is there, on one line, and no more than
        so much of it."""
        events = self.enterContext(capturedLogs())
        topics = [
            "T",
            "x" * 1000,
            *(f"T{number}" for number in range(sql_filters.MAX_LOGGED)),
        ]
        for _ in range(2):
            for topic in topics:
                self.register("a >\n\x1b[31m" + "?" * 1000, topic=topic)
                self.assertIsNone(self.wanted(topic))
        self.assertEqual(len(events), sql_filters.MAX_LOGGED)
        line = formatEvent(events[0])
        self.assertIn("filter of group 'G' for topic 'T' is not taken", line)
        self.assertTrue(line.isprintable(), line)
        self.assertLess(len(line), 300)
        self.assertEqual(self.filters.refused, 2 * len(topics))
        self.filters.look(lambda group, topic: False)
        self.register("a >")
        self.assertIsNone(self.wanted())
        self.assertEqual(len(events), sql_filters.MAX_LOGGED + 1)


class DeathTests(FilterCase):
    """Groups that go."""

    def test_gone(self) -> None:
        """A group that is not there any more leaves a dead filter, which lives again
        when it comes back, at the age that it has."""
        found = self.known("a > 5")
        self.filters.look(lambda group, topic: True)
        self.assertEqual(found.dead_ms, 0)
        self.now = 3000
        self.filters.look(lambda group, topic: False)
        self.now = 4000
        self.filters.look(lambda group, topic: False)
        self.assertEqual(found.dead_ms, 3000)
        again = self.known("a > 5")
        self.assertIs(again, found)
        self.assertEqual((again.dead_ms, again.born_ms), (0, 1000))

    def test_forgotten(self) -> None:
        """One that has been dead for filterDataCleanTimeSpan is forgotten."""
        self.known("a > 5")
        self.filters.look(lambda group, topic: False)
        self.now += DAY_MS
        self.filters.look(lambda group, topic: False)
        self.assertIsNotNone(self.filters.get("T", "G"))
        self.now += 1
        self.filters.look(lambda group, topic: False)
        self.assertIsNone(self.filters.get("T", "G"))
        self.assertEqual(self.filters.all(), [])

    def test_mostCharacters(self) -> None:
        """All expressions together have a limit; the dead go first, then none is
        taken."""
        long = "a = '" + "x" * 60_000 + "'"
        most = sql_filters.MAX_CHARACTERS // (len(long) + sql_filters.OVERHEAD)
        for number in range(most):
            self.assertIsNotNone(self.register(long, group=f"G{number}"))
        self.assertIsNone(self.register(long, group="H"))
        self.assertEqual(self.filters.refused, 1)
        self.filters.look(lambda group, topic: group != "G5")
        self.assertIsNotNone(self.register(long, group="H"))
        self.assertIsNone(self.filters.get("T", "G5"))
        self.assertEqual(len(self.filters.all()), most)

    def test_mostCharactersOfGroup(self) -> None:
        """The expressions of one group have a limit of their own, and the reason why
        there is no filter is known."""
        long = "a = '" + "x" * 60_000 + "'"
        size = len(long) + sql_filters.OVERHEAD
        most = sql_filters.MAX_GROUP_CHARACTERS // size
        for number in range(most):
            self.assertIsNotNone(self.register(long, topic=f"T{number}"))
        self.assertIsNone(self.register(long, topic="U"))
        self.assertIn(f"would have {(most + 1) * size} char", self.why("U"))
        self.assertEqual(self.why("T0"), "")
        self.assertIsNotNone(self.register(long, group="H"))
        self.assertIsNotNone(self.register("a = 1", 2, topic="T0"))
        self.assertIsNotNone(self.register(long, topic="U"))
        self.assertEqual(self.why("U"), "")

    def why(self, topic: str) -> str:
        """Why the group has no room for a filter."""
        return self.filters.no_room(topic, "G")


class BitMapTests(FilterCase):
    """The maps of messages."""

    def test_map(self) -> None:
        """Each filter that wants a message sets its bits, a dead one too."""
        self.assertEqual(self.filters.bit_map(b"T", b"a\x016\x02"), b"")
        self.register("a > 5", group="CG")
        self.filters.look(lambda group, topic: False)
        self.register("a > 7", group="CID_demo")
        for group in ("CG", "CID_demo"):
            self.wanted("T", group)
        self.assertEqual(self.filters.bit_map(b"T", b"a\x014\x02"), bytes(14))
        found = self.filters.bit_map(b"T", b"a\x016\x02")
        bits = [n for n in range(112) if found[n >> 3] >> (n & 7) & 1]
        self.assertEqual(bits, [0, 34, 73])
        self.assertEqual(self.filters.bit_map(b"U", b"a\x016\x02"), b"")

    def test_notCompiledYet(self) -> None:
        """A filter that is not compiled yet may want a message, as its map says; it is
        compiled beside the messages, and once. One that cannot be is none then."""
        self.register("mapped > 5", group="CG")
        self.register("mapped >", group="G2")
        for _ in range(2):
            found = self.filters.bit_map(b"T", b"mapped\x014\x02")
            bits = [n for n in range(112) if found[n >> 3] >> (n & 7) & 1]
            self.assertLessEqual({0, 34, 73}, {*bits})
        self.assertEqual(self.compiler.compiled, 0)
        for _ in range(9):
            self.clock.advance(0)
        self.assertEqual(self.compiler.compiled, 2)
        self.assertEqual(self.filters.bit_map(b"T", b"mapped\x014\x02"), bytes(14))
        self.assertEqual(len(self.filters.all()), 1)

    def test_mostMapped(self) -> None:
        """So much is evaluated for a message; others are said to match."""
        long = "a = '" + "x" * (sql_filters.MAX_MAPPED // 2) + "'"
        self.register(long, group="G1")
        self.register(long, group="CG")
        for group in ("G1", "CG"):
            wanted = self.filters.get("T", group)
            assert wanted is not None
            wanted.use(sql.compiled(long))
        found = self.filters.bit_map(b"T", b"a\x016\x02")
        bits = [n for n in range(112) if found[n >> 3] >> (n & 7) & 1]
        self.assertEqual(bits, [0, 34, 73])

    def test_passedOver(self) -> None:
        """A message whose map lacks the bits is not looked at, unless it is older than
        the filter, or the map is of another size."""
        self.known("a > 5")
        wanted = self.wanted()
        assert wanted is not None and wanted.may_match is not None
        may_match = wanted.may_match
        self.assertFalse(may_match(1001, bytes(14)))
        self.assertTrue(may_match(1001, b"\xff" * 14))
        self.assertTrue(may_match(1000, bytes(14)))
        self.assertTrue(may_match(1001, b""))
        self.assertTrue(may_match(1001, bytes(8)))


class RetryTests(FilterCase):
    """With filterSupportRetry."""

    def test_retries(self) -> None:
        """A message in the retry topic is filtered as in its first topic."""
        self.known("a > 5")
        wanted = self.filters.for_retries("G", None)
        assert wanted.matches is not None
        self.assertTrue(wanted.matches(b"RETRY_TOPIC\x01T\x02a\x016\x02"))
        self.assertFalse(wanted.matches(b"RETRY_TOPIC\x01T\x02a\x015\x02"))
        self.assertTrue(wanted.matches(b"RETRY_TOPIC\x01U\x02a\x015\x02"))
        self.assertTrue(wanted.matches(b"a\x015\x02"))
        self.assertGreater(wanted.cost, self.filters.for_retries("H", None).cost)

    def test_changedMeanwhile(self) -> None:
        """What a heartbeat has changed since counts, and moves the revision."""
        self.known("a > 5")
        wanted = self.filters.for_retries("G", None)
        revision = self.filters.revision
        self.known("a > 7", 2)
        self.assertGreater(self.filters.revision, revision)
        assert wanted.matches is not None
        self.assertFalse(wanted.matches(b"RETRY_TOPIC\x01T\x02a\x016\x02"))
        self.assertTrue(wanted.matches(b"RETRY_TOPIC\x01T\x02a\x018\x02"))
        self.register("a >", 3)
        self.assertTrue(wanted.matches(b"RETRY_TOPIC\x01T\x02a\x016\x02"))


class FileTests(FilterCase):
    """consumerFilter.json."""

    def stored(self) -> dict[str, object]:
        """The entry of the file for group G and topic T."""
        value: object = loads(self.disk.read(PATH))
        for name in ("filterDataByTopic", "T", "groupFilterData", "G"):
            assert isinstance(value, dict)
            value = value[name]
        assert isinstance(value, dict)
        return value

    def overwrite(self, content: bytes) -> None:
        """Make that the file."""
        file = self.disk.open(PATH, create=True)
        file.truncate(0)
        file.pwrite(content, 0)

    def rewrite(self, **changes: object) -> None:
        """Change that, and load it."""
        groups = {"G": {**self.stored(), **changes}, "H": "nonsense"}
        topics = {"T": {"groupFilterData": groups, "topic": "T"}, "U": []}
        self.overwrite(dumps({"filterDataByTopic": topics}))
        self.filters = self.make()
        self.filters.load()

    def test_written(self) -> None:
        """It has RocketMQ's form, and is written when something changed."""
        self.register("a > 1", 9)
        self.filters.save()
        self.assertEqual(
            self.stored(),
            {
                "bloomFilterData": {"bitNum": 112, "bitPos": [24, 26, 83]},
                "bornTime": 1000,
                "clientVersion": 9,
                "consumerGroup": "G",
                "dead": False,
                "deadTime": 0,
                "expression": "a > 1",
                "expressionType": "SQL92",
                "topic": "T",
            },
        )
        self.disk.remove(PATH)
        self.filters.save()
        self.assertFalse(self.disk.exists(PATH))
        for change in (
            lambda: self.register("a > 1", 10),
            lambda: self.filters.look(lambda group, topic: False),
            lambda: self.register("a > 1", 10),
            lambda: (self.register("a >", 11), self.wanted()),
        ):
            change()
            self.filters.save()
            self.assertTrue(self.disk.exists(PATH))
            self.disk.remove(PATH)
        self.successResultOf(self.filters.saved())

    def test_read(self) -> None:
        """A filter is as it was, but dead until its consumer comes."""
        self.register("a > 1", 9)
        self.filters.save()
        self.now = 100_000
        self.rewrite()
        (found,) = self.filters.all()
        self.assertEqual((found.expression, found.version), ("a > 1", 9))
        self.assertEqual((found.born_ms, found.dead_ms), (1000, 70_000))
        self.register("a > 1", 9)
        self.assertEqual((found.born_ms, found.dead_ms), (1000, 0))

    def test_readDead(self) -> None:
        """One that was dead has been since then."""
        self.register("a > 1", 9)
        self.filters.save()
        self.rewrite(deadTime=5000, dead=True)
        self.assertEqual([each.dead_ms for each in self.filters.all()], [5000])

    def test_senseless(self) -> None:
        """An entry that has no bits, no expression or another form is left out; one
        that does not compile is kept until it is needed."""
        self.register("a > 1", 9)
        self.filters.save()
        self.rewrite()
        self.assertEqual(len(self.filters.all()), 1)
        for change in (
            {"expression": None},
            {"expressionType": "TAG"},
            {"bloomFilterData": None},
            {"bornTime": "yesterday"},
        ):
            self.filters = self.make()
            self.register("a > 1", 9)
            self.filters.save()
            self.rewrite(**change)
            self.assertEqual(self.filters.all(), [], change)
        self.register("a > 1", 9)
        self.filters.save()
        self.rewrite(expression="a >")
        self.assertEqual(len(self.filters.all()), 1)
        self.assertIsNone(self.wanted())
        self.assertEqual(self.filters.all(), [])

    def test_otherBits(self) -> None:
        """With other settings of bloom filters nothing is taken."""
        self.register("a > 1", 9)
        self.filters.save()
        self.filters = self.make(expect_consumer_num_use_filter=64)
        self.filters.load()
        self.assertEqual(self.filters.all(), [])

    def test_none(self) -> None:
        """There need not be a file, and it may be none."""
        self.filters.load()
        self.overwrite(b"{broken")
        self.filters.load()
        self.overwrite(b'{"filterDataByTopic":7}')
        self.filters.load()
        self.assertEqual(self.filters.all(), [])
