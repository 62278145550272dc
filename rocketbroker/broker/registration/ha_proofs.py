# -*- test-case-name: tests.broker.registration.test_ha_proofs -*-
"""The proof of haSecretFile in requests 905 to 908, beside what else they are asked.

The names of brokers in a group, and who its master is, come from name servers, and
whoever reaches those can say what he likes. With a secret the requests that change whom
a slave follows have to prove it besides; so do name servers that say who lives (905).
Those of RocketMQ cannot: brokers find out by their own questions, each second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.context import BrokerContext, Caller
from rocketbroker.errors import NoPermission
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.remoting.refusal_log import AddressRefusals
from rocketbroker.remoting.request_hooks import source_of
from rocketbroker.replication.security import Secret
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.ha_secret import proved, why_not_proved

#: The requests of brokers and name servers to brokers.
BETWEEN_SERVERS: Final = (
    RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE,
    RequestCode.EXCHANGE_BROKER_HA_INFO,
)

#: Those of administrators about replication.
OF_ADMINISTRATORS: Final = (
    RequestCode.GET_BROKER_HA_STATUS,
    RequestCode.RESET_MASTER_FLUSH_OFFSET,
)


@final
class HaProofs:
    """Looks for the proof in requests."""

    def __init__(
        self,
        secret: Secret,
        wall_ms: Callable[[], int],
        seconds: Callable[[], float],
    ) -> None:
        self._secret = secret
        self._wall_ms = wall_ms
        self._refusals = AddressRefusals(seconds)

    def check(self, connection: IConnection, request: Command) -> None:
        """Let a request pass that proves the secret.

        @raise NoPermission: it does not.
        """
        fields = request.ext or {}
        why = why_not_proved(self._secret.value, request.code, fields, self._wall_ms())
        if why:
            self._refusals.say(
                source_of(connection),
                f"Request {request.code} of {connection.peer} is refused: {why}.",
            )
            raise NoPermission(f"request {request.code} is refused: {why}")


@final
class ProvingCaller:
    """Calls other brokers with requests that prove the secret."""

    def __init__(
        self, client: Caller, secret: Secret, wall_ms: Callable[[], int]
    ) -> None:
        self._client = client
        self._secret = secret
        self._wall_ms = wall_ms

    def oneway(self, address: str, command: Command) -> None:
        """See L{Caller.oneway}."""
        self._client.oneway(address, self._with_proof(command))

    def invoke(
        self, address: str, command: Command, timeout: float
    ) -> Deferred[Command]:
        """See L{Caller.invoke}."""
        return self._client.invoke(address, self._with_proof(command), timeout)

    def _with_proof(self, command: Command) -> Command:
        now_ms, fields = self._wall_ms(), command.ext or {}
        fields = proved(self._secret.value, command.code, fields, now_ms)
        return Command(command.code, fields, command.body, flag=command.flag)


def caller_of(context: BrokerContext) -> Caller:
    """What calls other brokers of the group."""
    secret = context.ha_secret
    if secret is None:
        return context.client
    return ProvingCaller(context.client, secret, context.wall_ms)
