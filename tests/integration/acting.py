"""A pair whose slave may act for its master, and a broker of another name."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from twisted.trial.unittest import TestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import RocketbrokerError
from rocketbroker.records.record import decode_all
from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from scripts.lab.pair import OURS, Group, Member, until
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

#: Of the name server.
NAMES: Final = {"supportActingMaster": "true", "notifyMinBrokerIdChanged": "true"}

TOPIC: Final = "T"


class ActingMasterCase(TestCase):
    """Real processes: a master and its slave, and a broker of another name."""

    #: Who made master and slave.
    makers = OURS, OURS

    def settings(self) -> dict[str, Any]:
        """Of master and slave."""
        return ACTING

    def setUp(self) -> None:
        """All are up, and have the topic."""
        self.group = Group(*self.makers, **self.settings())
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
