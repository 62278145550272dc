# -*- test-case-name: tests.broker.test_ports -*-
"""The responder tables of a broker's ports, and what stands before some requests there.

The main port answers all requests, the VIP port all but pulls
(C{docs/facts/broker.md 6.2}). With an admin port these two refuse what changes or
destroys. With haSecretFile requests 905 to 908 have to prove the secret; at the admin
port administrators ask 907 and 908 without, as RocketMQ's tools cannot prove it.
"""

from __future__ import annotations

from typing import final

from rocketbroker.broker.access import admin_port
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.registration.ha_proofs import (
    BETWEEN_SERVERS,
    OF_ADMINISTRATORS,
    HaProofs,
)
from rocketbroker.remoting.table import ResponderTable


@final
class Ports:
    """The tables, in which nothing is registered yet.

    @ivar main: of the main port.
    @ivar vip: of the VIP port.
    @ivar admin: of the admin port; C{None}: there is none.
    """

    def __init__(self, context: BrokerContext) -> None:
        self.main, self.vip = ResponderTable(), ResponderTable()
        self.admin: ResponderTable | None = None
        if context.settings.broker.rocketbroker_admin_port:
            self.admin = ResponderTable()
        self._guard(context)

    @property
    def tables(self) -> tuple[ResponderTable, ...]:
        """All tables."""
        client = self.main, self.vip
        return client if self.admin is None else (*client, self.admin)

    @property
    def with_pulls(self) -> tuple[ResponderTable, ...]:
        """Those that answer pulls, too."""
        return (self.main,) if self.admin is None else (self.main, self.admin)

    def _guard(self, context: BrokerContext) -> None:
        refused = admin_port.ADMINISTRATION if self.admin is not None else frozenset()
        proved = set(BETWEEN_SERVERS) | (set(OF_ADMINISTRATORS) - refused)
        check = None
        if context.ha_secret is not None:
            check = HaProofs(
                context.ha_secret, context.wall_ms, context.clock.seconds
            ).check
        for table in (self.main, self.vip):
            table.guard(refused, admin_port.refuse)
            if check is not None:
                table.guard(proved, check)
        if check is not None and self.admin is not None:
            self.admin.guard(BETWEEN_SERVERS, check)
