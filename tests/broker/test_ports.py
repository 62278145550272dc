"""The responder tables of a broker's ports."""

from __future__ import annotations

import attrs
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.access.admin_port import ADMINISTRATION
from rocketbroker.broker.broker import Broker
from rocketbroker.broker.ports import Ports
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import NoPermission
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.ha_secret import proved
from tests.broker.rig import WALL_MS, context_of


@attrs.frozen
class Given:
    """A secret."""

    value: bytes = b"s"


def served(connection: IConnection, request: Command) -> Answer:
    """A responder."""
    return response_to(request)


class PortsTests(SynchronousTestCase):
    """What stands before requests at each port."""

    def ports(self, has_secret: bool = False, **settings: str) -> Ports:
        """Those of a broker; one responder answers all."""
        made = context_of(Clock(), BrokerSettings.from_properties(settings))
        secret = Given() if has_secret else None
        ports = Ports(attrs.evolve(made, ha_secret=secret))
        for table in ports.tables:
            for code in (*ADMINISTRATION, 10, 905, 906, 907):
                table.register(code, served)
        return ports

    def refused(self, table: ResponderTable | None) -> set[int]:
        """The codes that are refused there."""
        assert table is not None
        found = set()
        for code, responder in table.responders.items():
            try:
                responder(RecordedConnection(), Command(code))
            except NoPermission:
                found.add(code)
        return found

    def test_noAdminPort(self) -> None:
        """The main port answers all."""
        ports = self.ports()
        self.assertIsNone(ports.admin)
        self.assertEqual(self.refused(ports.main), set())
        self.assertEqual(self.refused(ports.vip), set())

    def test_adminPortAloneAnswersAdministration(self) -> None:
        """Clients' ports answer the rest."""
        ports = self.ports(rocketbrokerAdminPort="10999")
        self.assertEqual(self.refused(ports.main), set(ADMINISTRATION))
        self.assertEqual(self.refused(ports.vip), set(ADMINISTRATION))
        self.assertEqual(self.refused(ports.admin), set())

    def test_secretGuardsReplication(self) -> None:
        """At the admin port administrators need none."""
        ports = self.ports(True)
        self.assertEqual(self.refused(ports.main), {905, 906, 907, 908})
        self.assertEqual(self.refused(ports.vip), {905, 906, 907, 908})
        ports = self.ports(True, rocketbrokerAdminPort="10999")
        wanted = {*ADMINISTRATION, 905, 906, 907}
        self.assertEqual(self.refused(ports.main), wanted)
        self.assertEqual(self.refused(ports.admin), {905, 906})

    def test_proofOpens(self) -> None:
        """For the request that it is of."""
        ports = self.ports(True)
        fields = proved(b"s", 906, {}, WALL_MS)
        answer = ports.main.responders[906](RecordedConnection(), Command(906, fields))
        assert isinstance(answer, Command)
        self.assertEqual(answer.code, 0)

    def test_lateRoomsAreGuarded(self) -> None:
        """A room that is made by its first request registers once more."""
        settings = {"rocketbrokerAdminPort": "10999", "storePathRootDir": "/store"}
        made = context_of(Clock(), BrokerSettings.from_properties(settings))
        broker = Broker(made)
        broker.pop  # noqa: B018  # makes it
        with self.assertRaises(NoPermission):
            code = RequestCode.POP_ROLLBACK
            broker.main.responders[code](RecordedConnection(), Command(code))
        assert broker.ports.admin is not None
        self.assertEqual(
            broker.ports.admin.responders.keys(), broker.main.responders.keys()
        )
