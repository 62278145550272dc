"""The brokers that share a name."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.registration.member_group import Least, MemberGroup
from rocketbroker.broker.registration.name_server_api import NameServerApi
from rocketbroker.broker.registration.name_servers import NameServers
from rocketbroker.broker.services import Services
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import ConnectionLost, NoPermission
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.command import Command
from tests.broker.callers import Caller
from tests.broker.rig import Known, logged


class MemberGroupTests(SynchronousTestCase):
    """L{MemberGroup}."""

    def setUp(self) -> None:
        """Slave 1 of group b, with two name servers."""
        self.caller = Caller()
        settings = BrokerSettings.from_properties(
            {
                "brokerName": "b",
                "brokerClusterName": "C",
                "brokerRole": "SLAVE",
                "brokerId": "1",
                "compatibleWithOldNameSrv": "false",
                "namesrvAddr": "n:1;10.0.0.2:2",
            }
        )
        clock = Clock()
        services = Services(clock, settings, lambda: 0)
        self.lookup = Known()
        self.servers = NameServers(settings, self.lookup, at_once, services)
        file = JsonTable(MemoryDisk(), "/config/topics.json", at_once, clock)
        self.heard: list[Least] = []
        self.group = MemberGroup(
            NameServerApi(self.caller, settings.broker, "1.2.3.4:5", "1.2.3.4:6"),
            self.servers,
            TopicTable(settings.broker, file, lambda: 0, False, False),
            settings.broker.broker_id,
            RefusalLog(clock.seconds),
        )
        self.group.watch(self.heard.append)

    def look(self, body: bytes) -> None:
        """Ask, and be answered."""
        done = self.group.look()
        (call,) = self.caller.take()
        self.assertEqual(call.command.code, 901)
        call.answer(body=b'{"brokerMemberGroup":{"brokerAddrs":' + body + b"}}")
        self.successResultOf(done)

    def test_heartbeat(self) -> None:
        """All name servers are told that the broker lives."""
        self.group.heartbeat()
        told = [(address, command.code) for address, command in self.caller.oneways]
        self.assertEqual(told, [("n:1", 904), ("10.0.0.2:2", 904)])

    def test_look(self) -> None:
        """The answer says how many live, this broker included, and whose id is the
        least; it is told each time."""
        self.assertEqual(self.group.alive, 1)
        for body, alive, least in (
            (b'{0:"m:1",1:"s:1"}', 2, Least(0, "m:1")),
            (b'{0:"m:1"}', 2, Least(0, "m:1")),
            (b'{2:"t:1",1:"s:1"}', 2, Least(1, "s:1")),
            (b'{1:"s:1"}', 1, Least(1, "s:1")),
        ):
            self.look(body)
            self.assertEqual((self.group.alive, self.heard.pop()), (alive, least))

    def test_nothing(self) -> None:
        """A name server that knows no member changes nothing."""
        self.look(b'{0:"m:1"}')
        self.look(b"{}")
        self.assertEqual((self.group.alive, len(self.heard)), (2, 1))

    def test_otherServer(self) -> None:
        """Where one name server does not answer the next one is asked; where none
        does all stays as it was."""
        self.look(b'{0:"m:1"}')
        done = self.group.look()
        for address in self.servers.current:
            (call,) = self.caller.take()
            self.assertEqual(call.address, address)
            call.fail()
        self.successResultOf(done)
        self.assertEqual((self.group.alive, len(self.heard)), (2, 1))
        self.servers.current = ()
        self.failureResultOf(self.ask(), ConnectionLost)

    def ask(self) -> Any:
        """Ask for all members."""
        return Deferred.fromCoroutine(self.group.ask())

    def test_notified(self) -> None:
        """A name server may say by itself that the least id has changed; a message
        without an id says nothing."""
        table = ResponderTable()
        self.group.register(table)
        for ext, wanted in (
            (
                {"minBrokerId": "1", "minBrokerAddr": "s:1", "offlineBrokerAddr": "m"},
                [Least(1, "s:1", "m")],
            ),
            (
                {"minBrokerId": "0", "minBrokerAddr": "m:1", "haBrokerAddr": "m:2"},
                [Least(0, "m:1", None, "m:2")],
            ),
            ({}, []),
        ):
            self.heard.clear()
            server = RecordedConnection(b"\x0a\0\0\2")
            table.responders[905](server, Command(905, ext))
            self.assertEqual(self.heard, wanted)

    def notify(self, host: bytes) -> None:
        """Somebody says that another id is the least."""
        table = ResponderTable()
        self.group.register(table)
        request = Command(905, {"minBrokerId": "0", "minBrokerAddr": "x:1"})
        table.responders[905](RecordedConnection(host), request)

    def test_notifiedByStranger(self) -> None:
        """Nobody else may say so; that is logged once a second."""

        def notify() -> None:
            for _ in range(3):
                self.assertRaises(NoPermission, self.notify, b"\x0a\0\0\3")

        (line,) = logged(notify)
        self.assertIn("10.0.0.3:50000 is refused", line)
        self.assertEqual(self.heard, [])

    def test_notifiedByName(self) -> None:
        """A name server that has a name is known by all addresses of that name, of both
        families, as they were looked up last."""
        self.lookup.hosts["n"] = ["10.0.0.3", "fd00::3"]
        hosts = b"\x0a\0\0\3", b"\xfd" + bytes(14) + b"\3"
        for host in hosts:
            self.assertRaises(NoPermission, self.notify, host)
        self.successResultOf(self.servers.hosts.look_up(self.servers.current))
        del self.lookup.hosts["n"]
        self.successResultOf(self.servers.hosts.look_up(self.servers.current))
        for host in hosts:
            self.notify(host)
        self.assertEqual(len(self.heard), 2)

    def test_allServers(self) -> None:
        """A member is one as soon as any name server says so; one that is silent, or
        that has just started and knows nobody, has said what it said last."""
        for first, second, wanted in (
            (b'{0:"m:1",1:"s:1"}', b'{0:"m:1",2:"t:1"}', {"m:1", "t:1"}),
            (None, b"{}", {"m:1", "t:1"}),
            (None, b'{0:"m:1"}', {"m:1"}),
        ):
            done = self.group.ask_all()
            for call, body in zip(self.caller.take(), (first, second), strict=True):
                if body is None:
                    call.fail()
                else:
                    answer = b'{"brokerMemberGroup":{"brokerAddrs":' + body + b"}}"
                    call.answer(body=answer)
            self.successResultOf(done)
            self.assertEqual(self.group.others(), wanted)
