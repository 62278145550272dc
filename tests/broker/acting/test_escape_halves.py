"""Open transactions of an absent master."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from rocketbroker.broker.acting.escape_halves import EscapeHalves
from rocketbroker.broker.messages.forwarded_message import ForwardedMessage
from rocketbroker.broker.roles import Role
from rocketbroker.broker.transaction.check_back import GROUP
from rocketbroker.records.names import HALF_TOPIC
from tests.broker.transactions import COMMIT, ROUND, TransactionCase


class EscapeHalvesTests(TransactionCase):
    """A broker that has a master's log, and acts for it."""

    def setUp(self) -> None:
        """It has three half messages, of which the second is over."""
        super().setUp()
        self.put: list[ForwardedMessage] = []
        self.takes = True
        self.held: Deferred[bool] | None = None
        transactions = self.rig.transactions
        self.escapes = EscapeHalves(
            self.rig.broker.context,
            transactions.checks,
            transactions.marks,
            self.rig.offsets,
            self.rig.broker.appends.own,
            self.take,
        )
        self.escapes.start()
        answers = [self.half(b"%d" % number) for number in range(3)]
        self.end(answers[1], COMMIT)
        self.log_end = self.rig.store.published_position

    async def take(self, escaped: ForwardedMessage) -> bool:
        """Another group is to take a half."""
        self.put.append(escaped)
        if self.held is not None:
            return await self.held
        return self.takes

    def act(self, seconds: float = 1.0) -> list[bytes]:
        """The master is gone, for so long; what was put elsewhere."""
        self.rig.broker.services.act_as(Role.ACTING_MASTER)
        self.rig.clock.advance(seconds)
        bodies = [each.body for each in self.put]
        self.put.clear()
        return bodies

    def offset(self) -> int:
        """How far the checks are, by the table of offsets."""
        return self.rig.offsets.query(GROUP, HALF_TOPIC, 0)

    def test_open(self) -> None:
        """Those that are open go to another group as prepared messages, once; nothing
        is stored here, and no producer is asked."""
        self.rig.broker.services.act_as(Role.ACTING_MASTER)
        self.rig.clock.advance(1)
        (first, third) = self.put
        self.assertEqual((first.body, third.body), (b"0", b"2"))
        self.assertEqual((first.topic, first.sys_flag & 12), ("T", 4))
        self.put.clear()
        self.assertEqual(self.act(ROUND), [])
        self.assertEqual((self.escapes.given, self.offset()), (2, 3))
        self.assertEqual(self.rig.store.published_position, self.log_end)
        self.assertEqual(self.party.questions(), [])

    def test_refused(self) -> None:
        """What nobody takes is tried again in the next round; none is passed."""
        self.takes = False
        self.assertEqual(self.act(), [b"0"])
        for _ in range(12):
            self.assertEqual(self.act(ROUND), [b"0"])
        self.assertEqual(self.offset(), -1)
        self.takes = True
        self.assertEqual(self.act(ROUND), [b"0", b"2"])
        self.assertEqual(self.offset(), 3)

    def test_master(self) -> None:
        """A master that takes the table over asks for none of them again."""
        self.act()
        self.rig.broker.services.act_as(Role.MASTER)
        for _ in range(4):
            self.rig.clock.advance(ROUND)
        self.assertEqual(self.party.questions(), [])

    def test_ended(self) -> None:
        """One that acts no more gives none away, and knows when that which is under way
        has ended."""
        self.successResultOf(self.escapes.ended())
        self.held = Deferred()
        self.assertEqual(self.act(), [b"0"])
        self.rig.broker.services.act_as(Role.SLAVE)
        ended = self.escapes.ended()
        self.assertNoResult(ended)
        self.held.callback(True)
        self.successResultOf(ended)
        self.assertEqual((self.put, self.offset()), ([], 2))

    def test_nothing(self) -> None:
        """Without transactions nobody sees the group."""
        rig = self.rig
        rig.offsets.forget_group(GROUP)
        self.escapes._advance(0)
        self.assertEqual(self.offset(), -1)
