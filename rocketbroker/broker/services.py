# -*- test-case-name: tests.broker.test_services -*-
"""The services of a broker: all that it does again and again, on one clock.

Each room has the lines of its own services, with their periods, and begins them. The
periods are RocketMQ's (C{docs/facts/broker.md} 5), those without a setting of its
own included. A run that is not over is not begun anew, and no error ends a service: it
is logged and counted, and the next run comes at its time.

Not every broker does all of it: each line says in which roles it is done
(C{docs/facts/ha.md} 4, 11, 13). A slave has the master's log, byte for byte, so it
stores nothing of its own: it delivers no delayed messages and ends no transactions. It
flushes, dispatches and cleans its own files, and its clients are its own. An acting
master stores nothing either, and gives to another group what cannot wait
(L{rocketbroker.broker.roles}).

What happens after an event is not here: dispatching and indexing after appends
(L{rocketbroker.broker.storage.store_scheduler}), group commit, retries of
registrations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, final

import attrs
import msgspec
from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.roles import EVERY, Role, role_of
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.remoting.periodic import PeriodicCall
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: Seconds, by the settings.
Seconds: TypeAlias = Callable[[BrokerSettings], float]

#: How often delay levels are looked at, and an append that failed is tried again.
DELIVERY_SECONDS: Final = 0.1


def always(seconds: float) -> Seconds:
    """A period that no setting changes."""
    return lambda settings: seconds


@attrs.frozen
class Service:
    """One line about what is done again and again.

    @ivar name: for log and metrics.
    @ivar reason: why it is done.
    @ivar period: from one run to the next.
    @ivar delay: until the first run; None: one period.
    @ivar roles: in which roles it is done.
    """

    name: str
    reason: str
    period: Seconds
    delay: Seconds | None = None
    roles: frozenset[Role] = EVERY


@final
class Services:
    """The services of one broker, of which those run that its role has.

    @ivar role: that of the broker now.
    @ivar calls: in the order in which they were begun.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        settings: BrokerSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self.role = role_of(settings)
        self.calls: dict[Service, PeriodicCall] = {}
        self._clock = clock
        self._wall_ms = wall_ms
        self._settings = settings
        self._resume: dict[Service, Callable[[], object]] = {}
        self._stopped = False

    def begin(
        self,
        service: Service,
        work: Callable[[], object],
        resume: Callable[[], object] | None = None,
    ) -> PeriodicCall:
        """Run a service from now on, whenever the broker's role has it.

        @param work: may return a C{Deferred}, which fires when the run is over.
        @param resume: called before the service runs in a role that the broker takes
            later; may return a C{Deferred}, which fires when it may run.
        """
        call = self.calls[service] = PeriodicCall(self._clock, service.name, work)
        if resume is not None:
            self._resume[service] = resume
        if self.is_on(service):
            self._start(service)
        return call

    def _start(self, service: Service) -> None:
        settings = self._settings
        first = None if service.delay is None else service.delay(settings)
        self.calls[service].start(service.period(settings), first)

    def is_on(self, service: Service) -> bool:
        """Whether the broker's role has a service: work of several turns asks again."""
        return self.role in service.roles

    def act_as(self, role: Role) -> None:
        """Take a role: end the services that it does not have, and run those it has.

        A run that is under way ends by itself; its work asks L{is_on}.
        """
        if role is self.role or self._stopped:
            return
        before, self.role = self.role, role
        self._log.info(
            "This broker was {before}, and is {role} from now on.",
            before=before.value,
            role=role.value,
        )
        for service, call in self.calls.items():
            if role not in service.roles:
                call.stop()
            elif before not in service.roles:
                resumed = maybeDeferred(self._resume.get(service, lambda: None))
                resumed.addCallbacks(
                    lambda _, service: self._resumed(service),
                    self._not_resumed,
                    callbackArgs=(service,),
                    errbackArgs=(service,),
                )

    def _resumed(self, service: Service) -> None:
        is_off = self._stopped or not self.is_on(service)
        if not is_off and not self.calls[service].running:
            self._start(service)

    def _not_resumed(self, failure: Failure, service: Service) -> None:
        """Run it all the same: it meets the error again, and goes on after it."""
        self._log.failure(
            "The {name} begins with an error.", failure, name=service.name
        )
        self._resumed(service)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._settings = settings
        for service, call in self.calls.items():
            if self.is_on(service):
                call.change(service.period(settings))

    def run_now(self) -> None:
        """Run each service that is on now, and a period later again."""
        for service, call in list(self.calls.items()):
            if self.is_on(service) and call.running:
                call.stop()
                call.start(call.period, 0)

    def stop(self) -> None:
        """Begin no more runs."""
        self._stopped = True
        for call in self.calls.values():
            call.stop()

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.GET_SERVICES, self.respond)

    def respond(self, connection: IConnection, request: Command) -> Command:
        """Request 31002: C{{"services": [...]}}, the rows of L{to_json}."""
        body = msgspec.json.encode({"services": self.to_json()})
        return response_to(request, body=body)

    def to_json(self) -> list[dict[str, Any]]:
        """A row for each service, for operators."""
        now, wall_ms = self._clock.seconds(), self._wall_ms()
        rows: list[dict[str, Any]] = []
        for service, call in self.calls.items():
            row = {
                "name": service.name,
                "reason": service.reason,
                "periodMillis": round(call.period * 1000),
                "runs": call.runs,
                "failures": call.failures,
                "isRunning": call.is_under_way,
                "isOn": self.is_on(service),
            }
            if call.runs:
                row["lastRunTimestamp"] = round(wall_ms - (now - call.begun_at) * 1000)
                row["lastRunMillis"] = round(call.last_seconds * 1000, 3)
            rows.append(row)
        return rows
