# -*- test-case-name: tests.broker.test_services -*-
"""All that a broker does again and again, in one table, on one clock.

The periods are RocketMQ's (C{docs/facts/broker.md} 5), those without a setting of its
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

from rocketbroker.broker.roles import ACTING, EVERY, MASTERS, SLAVES, Role, role_of
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.remoting.periodic import PeriodicCall
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: Seconds, by the settings.
Seconds: TypeAlias = Callable[[BrokerSettings], float]


#: How often a broker looks whether the next segment has to be made.
ALLOCATE_SECONDS: Final = 0.5

#: How often what was found wrong on the disk is logged.
FINDINGS_SECONDS: Final = 1.0

#: How often the disks are looked at: a disk can fill within RocketMQ's ten seconds.
DISK_SECONDS: Final = 1.0

#: How often each queue with held pulls is looked at (with longPollingEnable).
CHECK_SECONDS: Final = 5.0

#: How often delay levels are looked at, and an append that failed is tried again.
DELIVERY_SECONDS: Final = 0.1

#: How often marks of transactions that could not be written are tried again.
MARKS_SECONDS: Final = 1.0

#: How often offsets of groups that pop are committed: a tenth of what check points in
#: memory have to spare.
POP_SECONDS: Final = 0.1

#: How often the counters of topics and groups are looked at: a minute has six looks.
LOOK_SECONDS: Final = 10.0

#: How often a slave asks its master where the log ends: as often as they tell each
#: other that they are there.
MASTER_SECONDS: Final = 5.0

#: Bounds of registerNameServerPeriod: name servers forget a broker after two minutes,
#: and need not hear of it all the time.
REGISTRATION_SECONDS: Final = (10.0, 60.0)


def always(seconds: float) -> Seconds:
    """A period that no setting changes."""
    return lambda settings: seconds


def clamped(seconds: float) -> float:
    """The period of registrations, within its bounds."""
    low, high = REGISTRATION_SECONDS
    return min(max(seconds, low), high)


@attrs.frozen
class Service:
    """One line of the table.

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


# Store.

FLUSH_LOG: Final = Service(
    "flush of the commit log",
    "bounds what a power loss takes with ASYNC_FLUSH",
    lambda s: s.store.flush_interval_commit_log / 1000,
)
FLUSH_QUEUES: Final = Service(
    "flush of consume queues",
    "shortens the start after a crash",
    lambda s: s.store.flush_interval_consume_queue / 1000,
)
ALLOCATION: Final = Service(
    "allocation of segments",
    "no send waits for the making of a file",
    always(ALLOCATE_SECONDS),
)
FINDINGS: Final = Service(
    "report of findings",
    "damage that readers met is logged",
    always(FINDINGS_SECONDS),
)
LOOK_AT_DISKS: Final = Service(
    "look at the disks",
    "sends are refused before a disk is full",
    always(DISK_SECONDS),
)
CLEANING: Final = Service(
    "cleaning of the store",
    "expired files are removed",
    lambda s: s.store.clean_resource_interval / 1000,
    always(60),
)

# Clients.

HELD_PULLS: Final = Service(
    "check of held pulls",
    "catches arrivals that were not announced",
    lambda s: (
        CHECK_SECONDS
        if s.broker.long_polling_enable
        else s.broker.short_polling_time_mills / 1000
    ),
)
CLIENTS: Final = Service(
    "scan of clients",
    "clients that are silent leave their groups",
    always(10),
)
NOTICES: Final = Service(
    "notices to consumers",
    "with realTimeNotifyConsumerChange=false members are told of changes late",
    always(15),
    always(30),
)
DIAGNOSIS: Final = Service(
    "diagnosis",
    "finds problems of groups that nothing else reports",
    always(5),
)

SLOW_GROUPS: Final = Service(
    "protection from slow groups",
    "with disableConsumeIfConsumerReadSlowly groups far behind are switched off",
    always(180),
)

# Messages for later.

DELIVERY: Final = Service(
    "delivery of delayed messages",
    "messages whose delay is over become visible",
    always(DELIVERY_SECONDS),
    roles=MASTERS,
)
ENTER_TIMERS: Final = Service(
    "entering of timers",
    "messages for a certain time get into the timer wheel",
    always(DELIVERY_SECONDS),
)
DELIVER_TIMERS: Final = Service(
    "delivery of timers",
    "messages whose time has come become visible",
    always(DELIVERY_SECONDS),
    roles=MASTERS,
)
ESCAPE_TIMERS: Final = Service(
    "timers in a master's place",
    "messages whose time has come go to another group",
    always(DELIVERY_SECONDS),
    roles=ACTING,
)
FLUSH_TIMERS: Final = Service(
    "flush of timers",
    "a start goes on where the timers were",
    lambda s: max(1, s.store.timer_flush_interval_ms) / 1000,
)
COUNT_TIMERS: Final = Service(
    "count of timers",
    "counts of what waits that a crash has left wrong are set right at night",
    always(300),
    roles=MASTERS,
)
CHECKS: Final = Service(
    "checks of transactions",
    "producers are asked how open transactions ended",
    lambda s: max(1, s.broker.transaction_check_interval) / 1000,
    roles=MASTERS,
)
MARKS: Final = Service(
    "marks of transactions",
    "ends of transactions that could not be written are written",
    always(MARKS_SECONDS),
    roles=MASTERS,
)

# POP.

POP_PROGRESS: Final = Service(
    "progress of pops",
    "offsets of groups that pop are committed, check points in memory are written",
    always(POP_SECONDS),
    roles=MASTERS | ACTING,
)
REVIVE: Final = Service(
    "revive of popped messages",
    "messages that were not acknowledged in time are given out again",
    lambda s: max(1, s.broker.revive_interval) / 1000,
    roles=MASTERS | ACTING,
)

# The group (enableSlaveActingMaster).

HEARTBEATS: Final = Service(
    "heartbeats to name servers",
    "a name server notices within seconds that a broker is gone",
    lambda s: max(1, s.broker.broker_heartbeat_interval) / 1000,
    always(1),
)
MEMBERS: Final = Service(
    "look at the group",
    "the slave with the least id acts for a master that is gone",
    lambda s: max(1, s.broker.sync_broker_member_group_period) / 1000,
    always(1),
)
PRE_ONLINE: Final = Service(
    "way to the name servers",
    "what was done without a broker is taken over before clients find it",
    always(1),
    always(0),
)
ESCAPE_DELAYS: Final = Service(
    "delivery in a master's place",
    "messages whose delay is over go to another group",
    always(DELIVERY_SECONDS),
    roles=ACTING,
)
ESCAPE_HALVES: Final = Service(
    "open transactions in a master's place",
    "half messages go to another group, which asks their producers",
    lambda s: max(1, s.broker.transaction_check_interval) / 1000,
    always(1),
    roles=ACTING,
)

# Static topics.

CLEAN_MAPPINGS: Final = Service(
    "cleaning of mappings",
    "parts of moved queues whose messages are gone are not asked for any more",
    always(300),
    roles=MASTERS,
)

# Masters and slaves.

REPLICA_HOSTS: Final = Service(
    "look at who belongs to the group",
    "only copies of slaves count that name servers know",
    lambda s: clamped(s.broker.register_name_server_period / 1000),
    always(1),
)
METADATA_SYNC: Final = Service(
    "copy of the master's tables",
    "a slave can serve clients when its master is gone",
    always(3),
    always(10),
    roles=frozenset({Role.SLAVE}),
)

TIMER_SYNC: Final = Service(
    "look at the master's timers",
    "a slave knows what its master has delivered",
    always(3),
    roles=frozenset({Role.SLAVE}),
)

# Tables and figures.

SAVE_TABLES: Final = Service(
    "save of tables",
    "topics, groups, offsets and filters go to the disk",
    lambda s: s.broker.flush_consumer_offset_interval / 1000,
    always(10),
)
SAVE_DELAYS: Final = Service(
    "save of delays",
    "the progress of delay levels goes to the disk",
    lambda s: s.store.flush_delay_offset_interval / 1000,
    always(10),
)
SAVE_COUNTERS: Final = Service(
    "save of counters",
    "the numbers of open transactions go to the disk",
    lambda s: s.broker.transaction_metric_flush_interval / 1000,
)
SAMPLES: Final = Service(
    "samples",
    "rates of the last seconds and minutes are taken",
    always(1),
)
NAME_SERVERS: Final = Service(
    "look-up of name servers",
    "DNS or an address server may know others than before",
    lambda s: (
        (
            s.broker.update_name_server_addr_period
            if s.name_servers
            else s.broker.fetch_namesrv_addr_interval
        )
        / 1000
    ),
)
STATISTICS: Final = Service(
    "statistics",
    "tools ask for the last minute, hour and day of topics and groups",
    always(LOOK_SECONDS),
)
WATERMARKS: Final = Service(
    "watermarks",
    "requests that have waited for long are logged",
    always(1),
    always(10),
)
DISPATCH_BEHIND: Final = Service(
    "log of the dispatch",
    "messages that no consumer sees yet are logged",
    always(60),
    always(10),
)
MASTERS_END: Final = Service(
    "look at the master's log",
    "a slave can say how far behind its master it is",
    always(MASTER_SECONDS),
    always(1),
    SLAVES,
)
REGISTRATION: Final = Service(
    "registration with name servers",
    "a name server forgets a broker that is silent for two minutes",
    lambda s: clamped(s.broker.register_name_server_period / 1000),
    always(10),
)


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

    def stop(self) -> None:
        """Begin no more runs."""
        self._stopped = True
        for call in self.calls.values():
            call.stop()

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
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
