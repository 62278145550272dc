# -*- test-case-name: tests.broker.acting.test_ha_exchange -*-
"""Request 906, by which brokers of a group tell one another who is followed where.

A master that starts tells each slave where it is; a slave that starts asks the master.
A slave that is told of a master by a stranger refuses it.
The position that goes with it (masterFlushOffset, the end of the master's log at its
start) is kept by slaves with syncMasterFlushOffsetWhenStartup, and shown to operators;
nothing is cut by it.

C{docs/facts/ha.md} 6 and 13; C{docs/facts/controller.md} 23.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

import attrs
from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.context import Caller
from rocketbroker.broker.registration.name_server_api import successful
from rocketbroker.errors import NoPermission
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.namesrv import (
    ExchangeHAInfoRequestHeader,
    ExchangeHAInfoResponseHeader,
)

#: How long another broker may take to answer.
ANSWER_SECONDS: Final = 3.0


@attrs.frozen
class HAInfo:
    """The HA address and the progress of a master.

    @ivar address: its main port; None if it does not say.
    @ivar ha_address: where it is followed; None if the broker is no master.
    @ivar flush_offset: the end of its log at its start.
    """

    address: str | None = None
    ha_address: str | None = None
    flush_offset: int | None = None


@final
class HAExchange:
    """The requests that exchange HA information, asked and answered."""

    def __init__(
        self,
        client: Caller,
        own: Callable[[], HAInfo],
        told: Callable[[HAInfo], Deferred[None] | None],
        refusals: RefusalLog,
    ) -> None:
        """
        @param own: what this broker says of itself; nothing if it is a slave.
        @param told: a master says where it is; the answer waits for what it returns. It
            raises NoPermission if that is not the master of this broker.
        """
        self._client = client
        self._own = own
        self._told = told
        self._refusals = refusals

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.EXCHANGE_BROKER_HA_INFO, self.exchange)

    def ask(self, address: str) -> Deferred[HAInfo]:
        """Where the broker at C{address} is followed."""
        return self._call(address, HAInfo()).addCallback(info_in)

    def tell(self, address: str) -> Deferred[None]:
        """Tell a slave where this broker is."""
        return self._call(address, self._own()).addCallback(lambda answer: None)

    def _call(self, address: str, info: HAInfo) -> Deferred[Command]:
        header = ExchangeHAInfoRequestHeader(
            master_ha_address=info.ha_address,
            master_flush_offset=info.flush_offset,
            master_address=info.address,
        )
        command = Command(RequestCode.EXCHANGE_BROKER_HA_INFO, header.to_ext())
        called = self._client.invoke(address, command, ANSWER_SECONDS)
        return called.addCallback(successful)

    def exchange(self, connection: IConnection, request: Command) -> Answer:
        """Request 906."""
        header = ExchangeHAInfoRequestHeader.from_ext(request.ext)
        if header.master_ha_address:
            told = self._tell(connection, header)
            done = succeed(None) if told is None else told
            return done.addCallback(lambda _: response_to(request))
        own = self._own()
        answer = ExchangeHAInfoResponseHeader(
            master_ha_address=own.ha_address,
            master_flush_offset=own.flush_offset,
            master_address=own.address,
        )
        return response_to(request, ext=answer.to_ext())

    def _tell(
        self, connection: IConnection, header: ExchangeHAInfoRequestHeader
    ) -> Deferred[None] | None:
        """A master says where it is.

        @raise NoPermission: it is not this broker's.
        """
        info = HAInfo(
            header.master_address or None,
            header.master_ha_address,
            header.master_flush_offset,
        )
        try:
            return self._told(info)
        except NoPermission as error:
            self._refusals.say(
                f"Request 906 of {connection.peer} is refused: {error.remark}."
            )
            raise


def info_in(answer: Command) -> HAInfo:
    """What an answer says."""
    header = ExchangeHAInfoResponseHeader.from_ext(answer.ext)
    return HAInfo(
        header.master_address or None,
        header.master_ha_address or None,
        header.master_flush_offset,
    )
