"""A slave acts for a master that was killed, and the master takes over what it did."""

from __future__ import annotations

import signal
from functools import partial
from typing import Final

from rocketbroker.errors import ServiceNotAvailable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from scripts.lab.pair import Member
from tests.broker.pop.pops import bodies, handles
from tests.integration.acting import DELAY_SECONDS, TOPIC, ActingMasterCase

#: Longer than the test, in ms.
FOREVER_MS: Final = 10_000_000


class ActingMasterTests(ActingMasterCase):
    """What the slave does, and the master that comes back."""

    def test_master_killed(self) -> None:
        """What is due while a master is gone, and its open transactions, get to
        another group; the master that comes back delivers nothing of it again."""
        sent = [b"delayed-%d" % number for number in range(5)]
        for body in sent:
            self.send(self.master, body, "DELAY\x011\x02")
        half = "TRAN_MSG\x01true\x02PGROUP\x01PG\x02"
        self.send(self.master, b"half", half, 4)
        self.group.wait_for(self.slave)
        self.master.stop(signal.SIGKILL)
        self.wait_for(lambda: self.addresses("broker-a") == {0: self.slave.address})
        (queues,) = [q for q in self.route().queue_datas if q.broker_name == "broker-a"]
        self.assertEqual(queues.perm & 2, 0)
        self.wait_for(lambda: len(self.bodies(self.other)) == len(sent))
        self.assertEqual(self.bodies(self.other), sent)
        with self.assertRaises(ServiceNotAvailable):
            self.send(self.slave, b"refused")
        self.wait_for(lambda: self.halves(self.other) == 1)

        self.master.start()
        both = {0: self.master.address, 1: self.slave.address}
        self.wait_for(lambda: self.addresses("broker-a") == both)
        # The connection to the one that was killed is found dead first.
        self.wait_for(partial(self.send, self.master, b"later", "DELAY\x012\x02"))
        self.wait_for(lambda: self.bodies(self.master))
        self.assertEqual(self.bodies(self.master), [b"later"], "delivered twice")
        self.assertEqual(self.bodies(self.other), sent)

    def pop(self, broker: Member, invisible_ms: int) -> Command:
        """What a group gets of all queues of a broker."""
        ext = {
            "consumerGroup": "G",
            "topic": TOPIC,
            "queueId": "-1",
            "maxMsgNums": "32",
            "invisibleTime": str(invisible_ms),
            "pollTime": "0",
            "bornTime": "0",
            "initMode": "0",
            "order": "false",
        }
        return self.ask(broker.address, RequestCode.POP_MESSAGE, ext)

    def test_pop(self) -> None:
        """Timers that were pending at a master that was killed fire in another group,
        and what was in flight is given out again there; what was acknowledged is
        not."""
        self.assertEqual(bodies(self.pop(self.other, FOREVER_MS)), [b"first"])
        sent = [b"popped-%d" % number for number in range(5)]
        for body in sent:
            self.send(self.master, body)
        answer = self.pop(self.master, DELAY_SECONDS * 1000)
        self.assertEqual(sorted(bodies(answer)), [b"first", *sent])
        (first,) = (each for each in handles(answer, "broker-a") if not each.offset)
        ext = {
            "consumerGroup": "G",
            "topic": TOPIC,
            "queueId": str(first.queue_id),
            "extraInfo": first.text(),
            "offset": "0",
        }
        self.ask(self.master.address, RequestCode.ACK_MESSAGE, ext)
        timers = [b"timer-%d" % number for number in range(5)]
        due = f"TIMER_DELAY_SEC\x01{DELAY_SECONDS}\x02"
        for body in timers:
            self.send(self.master, body, due)
        self.group.wait_for(self.slave)
        self.master.stop(signal.SIGKILL)
        found: list[bytes] = []

        def is_all() -> bool:
            found.extend(bodies(self.pop(self.other, FOREVER_MS)))
            return len(found) >= len(sent) + len(timers)

        self.wait_for(is_all)
        self.assertEqual(sorted(found), sorted(sent + timers))
        self.assertEqual(self.bodies(self.other), timers)

    def halves(self, broker: Member) -> int:
        """How many half messages a broker has."""
        ext = {"topic": "RMQ_SYS_TRANS_HALF_TOPIC", "queueId": "0"}
        answer = self.ask(broker.address, RequestCode.GET_MAX_OFFSET, ext)
        return int((answer.ext or {})["offset"])
