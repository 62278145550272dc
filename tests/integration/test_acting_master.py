"""A slave acts for a master that was killed, and the master takes over what it did."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from twisted.trial.unittest import TestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import RocketbrokerError, ServiceNotAvailable
from rocketbroker.records.record import decode_all
from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from scripts.lab.pair import OURS, Group, Member, until
from tests.broker.pop.pops import bodies, handles
from tests.broker.rig import pull_ext, send_ext

#: How long level 1 waits; long enough to kill the master meanwhile.
DELAY_SECONDS: Final = 8

#: Of all brokers of both groups.
ACTING: Final[dict[str, Any]] = {
    "enableSlaveActingMaster": "true",
    "enableRemoteEscape": "true",
    "totalReplicas": 2,
    "messageDelayLevel": f"{DELAY_SECONDS}s 1s",
    "transactionCheckInterval": 1000,
    "transactionTimeOut": 60000,
}

#: Longer than the test, in ms.
FOREVER_MS: Final = 10_000_000

#: Of the name server.
NAMES: Final = {"supportActingMaster": "true", "notifyMinBrokerIdChanged": "true"}

TOPIC: Final = "T"


class ActingMasterTests(TestCase):
    """Real processes: a master and its slave, and a broker of another name."""

    #: Who made master and slave.
    makers = OURS, OURS

    def setUp(self) -> None:
        """All are up, and have the topic."""
        self.group = Group(*self.makers, **ACTING)
        self.addCleanup(self.group.stop)
        self.make_names()
        self.other = Member(
            OURS,
            0,
            self.group.folder / "other",
            namesrvAddr=self.group.names,
            brokerName="broker-o",
        )
        self.addCleanup(self.other.stop, signal.SIGKILL)
        self.client = Client(Settings(self.group.names))
        self.addCleanup(self.client.close)
        self.master, self.slave = self.group.members
        self.group.namesrv.start()
        for broker in (self.other, self.master):
            broker.start()
            self.wait_for(partial(self.send, broker, b"first"))
        self.wait_for(lambda: len(self.addresses("broker-a")) == 1)
        if self.slave.maker == OURS:
            self.group.tell_topics(self.slave)
        self.slave.start()
        self.wait_for(lambda: len(self.addresses("broker-a")) == 2)

    def make_names(self) -> None:
        """The name server, which is not up yet."""
        self.group.namesrv.set(**NAMES)

    def wait_for(self, what: Callable[[], object]) -> None:
        """Wait for something; an error is not yet."""

        def now() -> bool:
            try:
                return bool(what())
            except RocketbrokerError:
                return False

        if not until(now):
            all_of_them = (*self.group.members, self.other)
            self.fail("\n".join(each.output()[-3000:] for each in all_of_them))

    def ask(
        self, address: str, code: int, ext: dict[str, str], body: bytes = b""
    ) -> Command:
        """An answer."""
        return self.client.ask_server(address, code, ext, body, seconds=30)

    def send(
        self, broker: Member, body: bytes, properties: str = "", flag: int = 0
    ) -> Command:
        """Send a message to queue 0.

        @raise RocketbrokerError: it is not stored.
        """
        own = f"UNIQ_KEY\x01{body.decode()}\x02{properties}"
        ext = send_ext(TOPIC, d="1", properties=own, f=str(flag))
        return self.ask(broker.address, RequestCode.SEND_MESSAGE_V2, ext, body)

    def route(self) -> TopicRouteData:
        """Where the topic is."""
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        answer = self.ask(self.group.names, code, {"topic": TOPIC})
        return TopicRouteData.from_json(loads(answer.body))

    def addresses(self, name: str) -> dict[int, str]:
        """The brokers of a name, as clients are told them."""
        found = [d for d in self.route().broker_datas if d.broker_name == name]
        return found[0].broker_addrs if found else {}

    def bodies(self, broker: Member) -> list[bytes]:
        """What queue 0 of a broker holds, without the first message, sorted.

        @raise RocketbrokerError: nothing.
        """
        ext = pull_ext(1, 0, topic=TOPIC, sysFlag="4")
        answer = self.ask(broker.address, RequestCode.PULL_MESSAGE, ext)
        return sorted(each.body for each in decode_all(answer.body))

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
