"""The command line against our name server and broker in memory.

Requests of the blocking client go to the responders of both; nothing has a port, and
time moves when a request waits for something.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import IO, Any, ClassVar

import click
from click.testing import CliRunner, Result
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.surroundings import Surroundings
from rocketbroker.cli.command import command as rocketbroker
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.errors import BrokerError
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.scripted import ScriptedMachine, answer
from rocketbroker.testing.threads import at_once
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.routes import (
    BrokerData,
    ClusterInfo,
    QueueData,
    TopicRouteData,
)
from rocketbroker.wire.command import RESPONSE, Command
from tests.broker.rig import Rig, answered, heartbeat
from tests.cli.cluster.sender import MemorySender

NAME_SERVER = "ns:9876"
BROKER = "10.0.0.1:10911"

#: Of a broker that the name server knows, and which does not answer.
AWAY = "10.0.0.2:10911"

#: Of a broker with ACL 2.0 and a first user.
POLICIES = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"root","password":"hidden-root"}',
}

#: With which we are that user.
FIRST_USER = {
    "ROCKETMQ_CLIENT_ACCESS_KEY": "root",
    "ROCKETMQ_CLIENT_SECRET_KEY": "hidden-root",
}

#: How often time moves by a tenth of a second until a request must have its answer.
MAX_STEPS = 200

#: What a server does instead of answering as usual; None: as usual.
Fault = Callable[[Command], "Command | list[Command] | None"]


def refusal(code: int, remark: str = "") -> Fault:
    """A fault: an answer with a code."""
    return lambda command: answer(code, remark=remark)


class LocalCaller:
    """What a broker calls its name server by."""

    def __init__(self, table: ResponderTable, connection: RecordedConnection) -> None:
        self._table = table
        self._connection = connection

    def invoke(
        self, address: str, command: Command, timeout: float
    ) -> Deferred[Command]:
        """See L{rocketbroker.broker.registration.name_server_api.Caller}."""
        command.opaque = 1
        responder = self._table.responders[command.code]
        return maybeDeferred(lambda: answered(responder(self._connection, command)))

    def oneway(self, address: str, command: Command) -> None:
        """See L{rocketbroker.broker.registration.name_server_api.Caller}."""
        raise AssertionError(f"nobody takes request {command.code} without an answer")


class AdminCluster:
    """A name server and a broker, each started.

    @ivar rig: the broker.
    @ivar faults: what goes wrong, by request code, until it is taken away.
    @ivar machine: where the command runs.
    @ivar surroundings: of the command.
    """

    def __init__(self, testing: bool = False, settings: Mapping[str, str] = {}) -> None:
        """
        @param testing: whether the broker is in testing mode.
        @param settings: more of them, of the broker.
        """
        self.faults: dict[int, Fault] = {}
        connection = RecordedConnection(b"\x0a\0\0\1", 40000)
        server = NameServer(
            Clock(),
            NamesrvSettings.from_properties({}),
            MemoryDisk(),
            lambda: 0,
            at_once,
            lambda address, command: None,
        )
        self.rig = Rig(
            {
                "namesrvAddr": NAME_SERVER,
                "autoCreateTopicEnable": "false",
                **settings,
            },
            client=LocalCaller(server.responders, connection),
            testing=testing,
        )
        self.rig.broker.registration.registration.start()
        self.machine = ScriptedMachine(
            {
                NAME_SERVER: lambda command: self.serve(server.responders, command),
                BROKER: lambda command: self.serve(self.rig.table, command),
            }
        )

        self.surroundings = Surroundings(
            self.machine, partial(MemorySender, self.machine)
        )

    def serve(
        self, table: ResponderTable, command: Command, rig: Rig | None = None
    ) -> Any:
        """Answer a request, or fail as told.

        @param rig: the broker, if it is another one.
        """
        rig = rig or self.rig
        fault = self.faults.get(command.code)
        if fault is not None:
            found = fault(command)
            if found is not None:
                return found
        responder = table.responders.get(command.code)
        if responder is None:
            return answer(3, remark=f"request type {command.code} not supported")
        got: list[object] = []
        rig.connection.frames.clear()
        maybeDeferred(responder, rig.connection, command).addBoth(got.append)
        rig.batcher.flush()
        for _ in range(MAX_STEPS):
            if got not in ([], [None]) or rig.connection.frames:
                break
            rig.clock.advance(0.1)
        rig.scheduler.dispatch()
        sent = rig.answers()
        if sent or not got:
            return sent
        (result,) = got
        if isinstance(result, Failure):
            if not isinstance(result.value, BrokerError):
                result.raiseException()
            return answer(result.value.code, remark=str(result.value))
        if isinstance(result, Command):
            result.flag |= RESPONSE
        return result

    def with_broker_away(self, topic: str = "T", queues: int = 1) -> None:
        """Let the name server know another broker, which does not answer.

        @param topic: what it has, beside what broker-a has of it.
        """
        addresses = {"broker-a": BROKER, "broker-b": AWAY}
        datas = {
            name: BrokerData(
                cluster="DefaultCluster", broker_name=name, broker_addrs={0: address}
            )
            for name, address in addresses.items()
        }
        info = ClusterInfo(
            broker_addr_table=datas, cluster_addr_table={"DefaultCluster": [*datas]}
        )
        route = TopicRouteData(
            queue_datas=[
                QueueData(
                    broker_name=name,
                    read_queue_nums=queues,
                    write_queue_nums=queues,
                    perm=6,
                )
                for name in datas
            ],
            broker_datas=[*datas.values()],
        )
        self.faults[106] = lambda _: answer(body=fastjson.dumps(info))
        self.faults[105] = lambda command: (
            answer(body=fastjson.dumps(route))
            if (command.ext or {})["topic"] == topic
            else None
        )

    def topic(self, name: str, queues: int) -> None:
        """Make a topic that the name server knows."""
        self.rig.topic(name, queues)
        self.rig.broker.registration.registration.register_all(forced=True)

    def group(self, name: str) -> None:
        """Make a group."""
        self.rig.groups.put([SubscriptionGroupConfig(group_name=name)])

    def join(self, group: str, topics: list[str]) -> None:
        """Let a consumer with its group, and producer P, connect."""
        command = Command(34, {}, heartbeat(topics, group=group))
        self.serve(self.rig.table, command)
        assert self.rig.consumers.group(group) is not None

    def close(self) -> None:
        """Give the files back."""
        self.rig.close()


class VerbCase(SynchronousTestCase):
    """Calls of verbs in this process.

    @cvar is_testing: whether the broker is in testing mode.
    @cvar broker_settings: more of them, of the broker.
    @ivar environ: more variables of the command.
    """

    is_testing = False
    broker_settings: ClassVar[dict[str, str]] = {}

    def setUp(self) -> None:
        """A cluster, and a directory for contexts."""
        self.cluster = AdminCluster(self.is_testing, self.broker_settings)
        self.addCleanup(self.cluster.close)
        self.home = self.mktemp()
        self.environ: dict[str, str] = {}

    def call(
        self, *words: str, status: int = 0, stdin: str | bytes | IO[bytes] | None = None
    ) -> Result:
        """Call the command; it must end with that status."""
        result = CliRunner().invoke(
            rocketbroker,
            words,
            obj=self.cluster.surroundings,
            input=stdin,
            env={
                "XDG_CONFIG_HOME": self.home,
                "ROCKETMQ_NAMESRV": NAME_SERVER,
                "NAMESRV_ADDR": None,
                "TZ": "UTC",
                **self.environ,
            },
        )
        if result.exception is not None and not isinstance(
            result.exception, SystemExit | click.ClickException
        ):
            raise result.exception
        self.assertEqual(result.exit_code, status, result.output)
        return result

    def rows(self, *words: str, status: int = 0) -> list[dict[str, Any]]:
        """The rows that a verb prints, each with its kind."""
        result = self.call(*words, "--output", "jsonl", status=status)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def kind(self, kind: str, *words: str) -> list[dict[str, Any]]:
        """The rows of one kind, without it."""
        return [row for row in self.rows(*words) if row.pop("kind") == kind]
