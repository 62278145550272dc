"""A broker goes on with a store of 0.1.0, and C{rocketbroker store} reads it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.command import command
from rocketbroker.records.batches import unwrap
from rocketbroker.records.record import StoredMessage, decode, decode_all
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from tests.broker.pop.pops import messages
from tests.broker.rig import Rig, pull_ext
from tests.broker.transactions import COMMIT, ConnectionGroup
from tests.written_by_0_1_0.archive import (
    HOUR,
    SIZES,
    WALL_MS,
    disk_with_store,
    unpack,
)

#: What is delivered at once, and what still waits, in the topic of both.
DELIVERED = [b"committed", b'{"delay_level": 1}', b'{"delay_ms": 1000}']
WAITING = [b'{"delay_level": 17}', b'{"delay_ms": 3600000}']

#: By what consumers of 0.1.0 acknowledge what they have popped; the offset follows.
HANDLE = "0 1795893422603 3600000 0 0 broker-a 0"


class BrokerTests(SynchronousTestCase):
    """A broker that has started on it."""

    def setUp(self) -> None:
        """Start it."""
        self.rig = self.started()

    def started(self, *more: str) -> Rig:
        """A broker on a disk with the store, and with more files."""
        disk = disk_with_store()
        for path in more:
            disk.open(path, create=True).close()
        settings = {**SIZES, "brokerClusterName": "DefaultCluster"}
        rig = Rig(settings, disk=disk, start_ms=WALL_MS)
        self.addCleanup(rig.close)
        rig.broker.start()
        return rig

    def pass_by(self, seconds: float) -> None:
        """Let time pass, in steps of ten seconds."""
        self.rig.clock.pump([10.0] * round(seconds / 10))

    def pull(self, queue_id: int, **more: str) -> list[StoredMessage]:
        """Messages of a queue, as a consumer gets them."""
        found: list[StoredMessage] = []
        while True:
            ext = pull_ext(len(found), queue_id, topic="Orders", **more)
            answer = self.rig.ask(RequestCode.PULL_MESSAGE, ext)
            if answer.code != ResponseCode.SUCCESS:
                return found
            found += decode_all(answer.body)

    def bodies(self, topic: str) -> list[bytes]:
        """What the first queue of a topic holds."""
        return [message.body for message in self.rig.records(0, topic)]

    def pop(self, topic: str, **more: str) -> Command:
        """What a member of the group of the store's pops is given."""
        ext = {
            "consumerGroup": "poppers",
            "topic": topic,
            "queueId": "-1",
            "maxMsgNums": "32",
            "invisibleTime": "60000",
            "pollTime": "0",
            "bornTime": str(self.rig.wall_ms()),
            "initMode": "0",
            "expType": "TAG",
            "exp": "*",
            "order": "false",
            **more,
        }
        return self.rig.ask(RequestCode.POP_MESSAGE, ext)

    def popped(self, topic: str, **more: str) -> list[str]:
        """The bodies of it."""
        answer = self.pop(topic, **more)
        return [message.body.decode() for message in messages(answer)]

    def test_pullGivesEachMessageOnce(self) -> None:
        """All messages of both queues are pulled, with what was sent with them."""
        found = [message for queue in (0, 1) for message in self.pull(queue)]
        numbers = [int(message.properties["number"]) for message in found]
        self.assertEqual(Counter(numbers), Counter(range(100)))
        for number, message in zip(numbers, found, strict=True):
            self.assertEqual(message.keys, [f"k{number}"])
            self.assertEqual(message.tags, "odd" if number % 2 else "even")

    def test_keyFindsItsMessage(self) -> None:
        """A message is found by its key, in the index."""
        ext = {"topic": "Orders", "key": "k42", "maxNum": "9"}
        ext |= {"beginTimestamp": "0", "endTimestamp": str(1 << 62)}
        answer = self.rig.ask(RequestCode.QUERY_MESSAGE, ext)
        found = [message.body for message in decode_all(answer.body)]
        self.assertEqual(found, [b"42,"])

    def test_batchQueueGivesItsMessages(self) -> None:
        """A queue of batches is one still: six messages alone, and four in one."""
        records = self.rig.records(0, "Batches")
        self.assertEqual(len(records), 7)
        found = [part.body for record in records for part in unwrap(record)]
        self.assertEqual(found, [b"Batches %d" % number for number in range(10)])

    def test_tablesHaveTopicsGroupsAndOffsets(self) -> None:
        """What administrators and consumers have said is known."""
        self.assertIn(
            "readers", [each.group_name for each in self.rig.groups.configs()]
        )
        orders = self.rig.topics.config("Orders")
        assert orders is not None
        self.assertEqual((orders.read_queue_nums, orders.write_queue_nums), (2, 2))
        self.assertTrue(self.rig.topics.is_batch("Batches"))
        for queue in (0, 1):
            self.assertEqual(self.rig.offsets.query("readers", "Orders", queue), 7)

    def test_delayedMessagesAndTimersComeWhenDue(self) -> None:
        """What waits is delivered within seconds of its time, and nothing again."""
        self.pass_by(60)
        self.assertEqual(sorted(self.bodies("Waits")), DELIVERED)
        self.pass_by(HOUR)
        found = self.bodies("Waits")
        self.assertEqual(sorted(found[:3]), DELIVERED)
        self.assertEqual(sorted(found[3:]), WAITING)

    def test_popGoesOnBehindWhatIsInFlight(self) -> None:
        """A pop gives what nobody has, and what nobody acknowledges comes again."""
        self.assertEqual(self.popped("Popped"), ["Popped 4", "Popped 5"])
        self.assertEqual(self.popped("Popped"), [])
        self.pass_by(HOUR)
        found = sorted({text for _ in range(3) for text in self.popped("Popped")})
        self.assertEqual(found, [f"Popped {number}" for number in range(1, 6)])

    def test_orderedPopWaitsForWhatIsInFlight(self) -> None:
        """A queue that is popped in order is held until the time is over."""
        self.assertEqual(self.popped("InOrder", order="true"), [])
        self.pass_by(HOUR)
        found = self.popped("InOrder", order="true")
        self.assertEqual(found, [f"InOrder {number}" for number in range(1, 6)])

    def test_handleOfAnEarlierPopAcknowledges(self) -> None:
        """What consumers got from the broker of 0.1.0 is taken by this one."""
        for offset in (1, 2):
            ext = {
                "consumerGroup": "poppers",
                "topic": "Popped",
                "queueId": "0",
                "extraInfo": f"{HANDLE} {offset}",
                "offset": str(offset),
            }
            answer = self.rig.ask(RequestCode.ACK_MESSAGE, ext)
            self.assertEqual(answer.code, ResponseCode.SUCCESS)
        self.pass_by(HOUR)
        found = sorted({text for _ in range(3) for text in self.popped("Popped")})
        self.assertEqual(found, [f"Popped {number}" for number in range(3, 6)])

    def test_openTransactionIsAskedAboutAndCommitted(self) -> None:
        """Of three transactions the one without an end is asked about."""
        party = ConnectionGroup(self.rig)
        self.pass_by(60)
        (question, *_) = party.questions()
        self.assertEqual(decode(question.body).unique_key, "open")
        self.assertNotIn(b"open", self.bodies("Waits"))
        party.reply(question, COMMIT)
        self.assertEqual(self.bodies("Waits")[3:], [b"open"])
        self.pass_by(120)
        self.assertEqual(party.questions(), [])

    def test_storeThatWasNotStoppedIsRecovered(self) -> None:
        """With the mark of a broker that was killed, all is there as well."""
        self.rig.close()
        self.rig = self.started("/store/abort")
        found = [message for queue in (0, 1) for message in self.pull(queue)]
        numbers = Counter(int(message.properties["number"]) for message in found)
        self.assertEqual(numbers, Counter(range(100)))


class CommandTests(SynchronousTestCase):
    """C{rocketbroker store} on its directory."""

    def setUp(self) -> None:
        """Lay it on the disk."""
        folder = unpack(self.mktemp())
        self.store = str(folder / "store")
        self.settings = folder / "broker.conf"
        lines = (f"{name}={value}\n" for name, value in SIZES.items())
        self.settings.write_text("".join(lines))

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """The rows that a command prints."""
        all_words = ("store", *words, "--output", "jsonl")
        result = CliRunner().invoke(command, all_words)
        self.assertEqual(result.exit_code, 0, result.output)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_verifyFindsNoFault(self) -> None:
        """It is whole, its queues and its index, too."""
        (row,) = self.rows("verify", self.store, "-c", str(self.settings))
        self.assertEqual(row["faults"], 0)
        self.assertGreater(row["records"], 100)
        self.assertGreater(row["index_entries"], 100)

    def test_lsCountsMessagesAndWhatWaits(self) -> None:
        """Queues with their messages, timers, and what is in flight."""
        rows = self.rows("ls", self.store)
        counts = {
            (row["topic"], row["queue"]): row["messages"]
            for row in rows
            if "messages" in row
        }
        self.assertEqual(counts["Orders", 0] + counts["Orders", 1], 100)
        self.assertEqual((counts["Popped", 0], counts["Waits", 0]), (6, 3))
        (timers,) = (row for row in rows if "not_entered" in row)
        self.assertEqual(timers["pending"], 3)
        flights = [row["in_flight"] for row in rows if "in_flight" in row]
        self.assertEqual(len(flights), 2)

    def test_catPrintsEachMessage(self) -> None:
        """All messages of a topic, with their bodies."""
        rows = self.rows("cat", self.store, "Orders")
        self.assertEqual(len(rows), 100)
