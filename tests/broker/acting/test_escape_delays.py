"""Delayed messages of an absent master."""

from __future__ import annotations

from twisted.internet.defer import Deferred, FirstError

from rocketbroker.broker.acting.escape_delays import REST_SECONDS, EscapeDelays
from rocketbroker.broker.messages.forwarded_message import ForwardedMessage
from rocketbroker.broker.roles import Role
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.store.consumequeue.queue import Queue
from tests.broker.delays import DelayingCase
from tests.broker.rig import logged

#: The delays of levels 1 and 2.
LEVELS = "1s 5s"


class EscapeDelaysTests(DelayingCase):
    """A broker that has a master's log, and acts for it."""

    def setUp(self) -> None:
        """It has three messages that are due in a second."""
        self.begin(messageDelayLevel=LEVELS)
        self.put: list[tuple[bytes, Deferred[bool]]] = []
        self.refused: set[bytes] = set()
        self.holds = False
        self.delays = EscapeDelays(
            self.rig.broker.context,
            self.rig.broker.schedule.offsets,
            self.rig.schedule.levels,
            self.take,
        )
        self.delays.start()
        for number in range(3):
            self.send(1, b"%d" % number)

    def take(self, escaped: ForwardedMessage) -> Deferred[bool]:
        """Another group is to take a message."""
        answer: Deferred[bool] = Deferred()
        self.put.append((escaped.body, answer))
        if not self.holds:
            answer.callback(escaped.body not in self.refused)
        return answer

    def act(self) -> None:
        """The master is gone."""
        self.rig.broker.services.act_as(Role.ACTING_MASTER)

    def taken(self) -> list[bytes]:
        """The messages that were put since the last look."""
        bodies = [body for body, _ in self.put]
        self.put.clear()
        return bodies

    def offset(self, level: int = 1) -> int | None:
        """How far a level is by the table."""
        return self.rig.broker.schedule.offsets.get(level)

    def test_due(self) -> None:
        """What is due goes to another group, in order, and nothing is stored here."""
        end = self.rig.store.published_position
        self.act()
        self.send(2, b"later")
        end = self.rig.store.published_position
        self.pass_by(0.9)
        self.assertEqual(self.taken(), [])
        self.pass_by(0.3)
        self.assertEqual(self.taken(), [b"0", b"1", b"2"])
        self.assertEqual((self.offset(), self.offset(2)), (3, None))
        self.pass_by(5)
        self.assertEqual(self.taken(), [b"later"])
        self.assertEqual(self.delays.delivered, 4)
        self.assertEqual(self.rig.store.published_position, end)

    def test_delivered(self) -> None:
        """What the master has delivered is recognised by the log, and not delivered
        again, though the table of offsets is behind."""
        self.pass_by(1.2)
        self.assertEqual(len(self.bodies()), 3)
        self.send(1, b"3")
        self.act()
        self.pass_by(1.2)
        self.assertEqual(self.taken(), [b"3"])
        self.assertEqual(self.offset(), 4)

    def test_refused(self) -> None:
        """What nobody takes is tried again later, and what was taken is not."""
        self.act()
        self.refused = {b"1"}
        self.pass_by(1.1)
        self.assertEqual(self.taken(), [b"0", b"1", b"2"])
        self.assertEqual(self.offset(), 1)
        self.pass_by(REST_SECONDS - 0.2)
        self.assertEqual(self.taken(), [])
        self.refused = set()
        self.pass_by(0.3)
        self.assertEqual((self.taken(), self.offset()), ([b"1"], 3))

    def test_ended(self) -> None:
        """One that acts no more puts nothing more, and knows when what is under way has
        ended, and is in the table."""
        self.successResultOf(self.delays.ended())
        self.act()
        self.holds = True
        self.pass_by(1.1)
        self.rig.broker.services.act_as(Role.SLAVE)
        ended = self.delays.ended()
        self.pass_by(1)
        self.assertNoResult(ended)
        for _, answer in self.put:
            answer.callback(True)
        self.successResultOf(ended)
        self.assertEqual((len(self.taken()), self.offset()), (3, 3))
        self.pass_by(1)
        self.assertEqual(self.taken(), [])

    def test_version(self) -> None:
        """Its table is newer than the master's, so that a master takes it."""
        version = self.rig.broker.schedule.offsets.version
        self.act()
        self.assertTrue(self.rig.broker.schedule.offsets.version.is_newer_than(version))

    def test_saved(self) -> None:
        """Each step is written down at once: a slave that starts anew goes on."""
        self.act()
        self.pass_by(1.1)
        file = self.rig.disk.read("/store/config/delayOffset.json")
        self.assertIn(b"{1:3}", b"".join(file.split()))

    def test_unreadable(self) -> None:
        """What cannot be read is passed over, counted and said."""
        queue = self.rig.store.queue(SCHEDULE_TOPIC, 0)
        assert isinstance(queue, Queue)
        queue.files.all[0].file.pwrite(b"\0" * 7 + b"\1", 20)
        self.act()
        lines = logged(lambda: self.pass_by(1.1))
        self.assertEqual((self.taken(), self.offset()), ([b"0", b"2"], 3))
        self.assertEqual(self.delays.unreadable, 1)
        self.assertIn("cannot be read", " ".join(lines))

    def test_failure(self) -> None:
        """After a mistake a level rests, and goes on."""
        self.act()
        self.holds = True
        self.pass_by(1.1)
        for _, answer in self.put:
            answer.errback(ValueError("a mistake"))
        self.assertEqual(len(self.flushLoggedErrors(FirstError)), 1)
        self.put.clear()
        self.holds = False
        self.pass_by(REST_SECONDS + 0.1)
        self.assertEqual(self.taken(), [b"0", b"1", b"2"])
