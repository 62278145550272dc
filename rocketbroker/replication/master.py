# -*- test-case-name: tests.replication.test_master -*-
"""The master's side of replication: a port, and the slaves that have connected to it.

Each slave is served for itself, from the position that its first report asks for:

  - New data goes out at the end of the turn that appended it, as one read from memory
    and one write to the socket.
  - A slave that is behind gets large pieces, one at a time: the next is read when the
    socket has taken the last. So a slow slave costs a piece of memory and nothing else;
    nobody waits for it. Where the disk may have to work, a thread reads.
  - One whose position is not in this log gets heartbeats, as RocketMQ has it; what is
    wrong is in its C{problem} and in the log, and it counts as no copy.

Anybody can connect, and report what he likes. So a report counts up to what was sent on
that connection, and only one of a slave does: L{interfaces.Membership
<rocketbroker.replication.interfaces.Membership>} says which connections are slaves'. A
stranger is sent the log and counts for nothing, or is sent nothing and let go after
some seconds, in which he may turn out to be a slave that has just started. A slave's
connection stays one until it ends, even if name servers forget the slave meanwhile.
With haSecretFile nobody gets so far who does not prove that he has the secret:
L{rocketbroker.replication.security}.

C{docs/facts/ha.md} 3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final, cast, final

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IReactorTime,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol, ServerFactory
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import classImplements

from rocketbroker.config.store import StoreOptions
from rocketbroker.remoting.addresses import address_text
from rocketbroker.remoting.periodic import PeriodicCall
from rocketbroker.remoting.plain_port import PlainPort, connection_below
from rocketbroker.remoting.refusal_log import AddressRefusals, RefusalLog
from rocketbroker.replication.interfaces import (
    InThread,
    IReplica,
    IReplicaServer,
    Membership,
    ReplicatedStore,
)
from rocketbroker.replication.security import NO_SECURITY, HaSecurity, SecretDoor
from rocketbroker.replication.socket_writer import SocketWriter
from rocketbroker.replication.stop_watch import StopWatch
from rocketbroker.replication.transfer_rate import TransferRate
from rocketbroker.wire.ha_secret import MasterHandshake
from rocketbroker.wire.hastream import ReportReader, frames

#: How much of the log is read at once for a slave that is behind: so much waits in
#: memory for its socket. Copying it takes half a millisecond.
PIECE_BYTES: Final = 1 << 20

#: What was appended last is in memory: it is not worth asking whether it is.
WARM_BYTES: Final = 4 << 20

#: For so long a connection may send no report. Slaves of RocketMQ send the first within
#: five seconds.
FIRST_REPORT_SECONDS: Final = 20.0

#: How often each slave is looked at, at the least; RocketMQ does it as often.
LOOK_SECONDS: Final = 1.0

#: With haServeStrangers=false, for how long one may be connected that is not known yet.
STRANGER_SECONDS: Final = 10.0

#: Who is a stranger for so long gets into the log: slaves that start are for a moment.
STRANGE_SECONDS: Final = 5.0


@final
class Replica(Protocol):
    """A slave that is connected, or a stranger.

    @ivar host: where it is.
    @ivar is_slave: whether it is a slave.
    @ivar problem: a sentence on why it is sent nothing now; or empty.
    @ivar is_ahead: whether its log was longer than this one when it came.
    """

    _log: ClassVar[Logger] = Logger()

    def __init__(self, server: ReplicaServer) -> None:
        self.address = self.host = ""
        self.is_slave = False
        self.acked = -1
        self.sent = -1
        self.problem = ""
        self.is_ahead = False
        self._has_confirmed = False
        self._server = server
        self._reports = ReportReader()
        self._rate = TransferRate(server.clock.seconds)
        self._outlet: SocketWriter
        self._silent = 0.0
        self._wrote_at = server.clock.seconds()
        self._is_reading = False
        self._is_gone = False
        self._is_served = False
        self._strange = 0.0
        self._held: IDelayedCall | None = None
        self._had_all_ms = 0
        self._mark: tuple[int, int] | None = None
        self._logged = ""

    @property
    def bytes_per_second(self) -> int:
        """What it was sent in the last whole second."""
        return self._rate.last()

    @property
    def caught_up_ms(self) -> int:
        """When it last had all that the master had, by the time of day."""
        if self.counts and self.acked >= self._server.store.published_position:
            return self._server.wall_ms()
        return self._had_all_ms

    @property
    def counts(self) -> bool:
        """Whether what it has reported is a copy of this log.

        The first report only asks where to begin: the slave may find that its log and
        this one differ before that. A slave of ours reports again when it knows better,
        one of RocketMQ's after five seconds or with the first data.
        """
        return self._has_confirmed and not self.is_ahead

    def is_in_sync(self, end: int) -> bool:
        """Whether it is less than haMaxGapNotInSync bytes behind C{end}."""
        gap = self._server.options.ha_max_gap_not_in_sync
        return not self.is_ahead and end - self.acked < gap

    # Called by the transport.

    def connectionMade(self) -> None:
        """It is there; it is sent nothing until it reports."""
        transport = cast(ITCPTransport, self.transport)
        transport.setTcpNoDelay(True)
        peer = transport.getPeer()
        self.host = peer.host
        self.address = address_text(peer.host, peer.port)
        self._outlet = SocketWriter(transport, self.push)
        self._server.joined(self)

    def dataReceived(self, data: bytes) -> None:
        """It reports; what it was not sent it does not have."""
        self._silent = 0.0
        position = self._reports.feed(data)
        if position is None or position < 0:
            return
        if self.sent < 0:
            self._begin(position)
        else:
            self._has_confirmed = True
            position = min(position, self.sent)
        self.acked = position
        mark = self._mark
        if mark is not None and position >= mark[0]:
            self._had_all_ms = mark[1]
            self._mark = None
        if self.is_slave:
            self._server.has_reported()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It has gone."""
        self._is_gone = True
        if self._held is not None:
            self._held.cancel()
            self._held = None
        if self.is_slave and self.sent >= 0:
            self._log.info(
                "The slave {address} has gone; it had the log up to {acked}.",
                address=self.address,
                acked=self.acked,
            )
        self._server.left(self)

    def admit(self, is_slave: bool, is_served: bool) -> None:
        """Whether it is a slave, and is sent the log, has been found out."""
        if is_slave and not self.is_slave and self.sent >= 0:
            self._log.info(
                "The slave {address} is known now; it has been sent the log up to "
                "{sent}.",
                address=self.address,
                sent=self.sent,
            )
        if is_slave != self.is_slave and self.sent >= 0:
            self._engage(not is_slave)
        self.is_slave = is_slave
        if self.problem:
            self._cannot(self.problem)
        if is_served and not self._is_served:
            self._is_served = True
            self.push()
        self._is_served = is_served

    def _engage(self, is_spare: bool) -> None:
        connection = connection_below(self.transport)
        if connection is not None:
            connection.engage(is_spare)

    # Sending.

    def _begin(self, position: int) -> None:
        """Its first report: it has all before C{position}, or nothing."""
        server = self._server
        self._engage(not self.is_slave)
        end = server.store.published_position
        if not position:
            size = server.options.mapped_file_size_commit_log
            position = end - end % size
        self.sent = position
        if self.is_slave:
            self._log.info(
                "The slave {address} is connected; it is sent the log from {position} "
                "on.",
                address=self.address,
                position=position,
            )
        if position > end:
            self.is_ahead = True
            self._cannot(
                f"The slave {self.address} has the log up to {position}, this broker "
                f"only up to {end}: it is sent nothing."
            )
        else:
            self.push()

    def _cannot(self, problem: str) -> None:
        """It is sent nothing for now; the log has it once."""
        self.problem = problem
        if problem != self._logged and self.is_slave:
            self._logged = problem
            self._log.warn("{problem}", problem=problem)

    def push(self) -> None:
        """Send it some of what it lacks, if it takes something now."""
        at, outlet = self.sent, self._outlet
        if at < 0 or outlet.is_busy or self._is_reading or self.problem:
            return
        if not self._is_served:
            return
        server = self._server
        store = server.store
        end = store.published_position
        if end <= at or self._is_gone:
            return
        size = min(end - at, PIECE_BYTES)
        if server.max_per_second:
            size = min(size, server.max_per_second - self._rate.now())
            if size <= 0:
                self._hold()
                return
        if self._mark is None:
            self._mark = (end, server.wall_ms())
        try:
            if end - at > WARM_BYTES and store.raw_log.is_cold(at):
                self._is_reading = True
                done = server.in_thread(partial(store.raw_log.read, at, size))
                done.addBoth(self._was_read).addErrback(self._failed)
            else:
                self._give(store.raw_log.read(at, size))
        except OSError as error:
            self._unreadable(error)

    def _was_read(self, found: bytes | Failure) -> None:
        """A thread has read what comes next, or could not."""
        self._is_reading = False
        if isinstance(found, Failure):
            self._unreadable(found.getErrorMessage())
        elif not self._is_gone:
            self._give(found)

    def _failed(self, failure: Failure) -> None:
        self._log.failure("Sending to {peer} failed.", failure, peer=self.address)
        cast(ITCPTransport, self.transport).abortConnection()

    def _unreadable(self, error: object) -> None:
        self._cannot(f"The log cannot be read for {self.address}: {error}")

    def _give(self, log: bytes) -> None:
        """Send these bytes of the log."""
        server = self._server
        if not log:
            self._cannot(
                f"The slave {self.address} needs the log from {self.sent} on, which "
                f"begins at {server.store.min_position} here: it is sent nothing."
            )
            return
        data = frames(self.sent, log, server.options.ha_transfer_batch_size)
        self.sent += len(log)
        self._wrote_at = server.clock.seconds()
        self._rate.add(len(data))
        self._outlet.write(data)
        if self.sent < server.store.published_position and not self._outlet.is_busy:
            server.appended()

    def _hold(self) -> None:
        """It was sent all that it may be sent in this second."""
        if self._held is None:
            self._held = self._server.clock.callLater(self._rate.rest(), self._release)

    def _release(self) -> None:
        self._held = None
        self.push()

    def look(self, seconds: float) -> None:
        """Once a second: end a silent one, keep an idle one, try again what failed.

        @param seconds: how long it may have been silent since the last look.
        """
        server, options = self._server, self._server.options
        self._silent += seconds
        if self._silent > options.ha_housekeeping_interval / 1000:
            if self.is_slave:
                self._log.warn("The slave {address} is silent.", address=self.address)
            cast(ITCPTransport, self.transport).abortConnection()
            return
        if not self.is_slave:
            self._look_at_stranger(seconds)
        if not self._is_served:
            return
        if self.problem and not self.is_ahead:
            self.problem = ""
            self.push()
        now = server.clock.seconds()
        idle = now - self._wrote_at > options.ha_send_heartbeat_interval / 1000
        if idle and self.sent >= 0 and not self._outlet.is_busy:
            self._wrote_at = now
            data = frames(self.sent, b"", 1)
            self._rate.add(len(data))
            self._outlet.write(data)

    def _look_at_stranger(self, seconds: float) -> None:
        """It is a stranger for so much longer: log it, or let it go."""
        before, self._strange = self._strange, self._strange + seconds
        if before <= STRANGE_SECONDS < self._strange:
            self._server.refusals.say(
                f"{self.address} is connected to the port of replication and counts as "
                "no copy: it is neither a slave that name servers know nor in "
                "haTrustedAddresses."
            )
        if self._strange > STRANGER_SECONDS and not self._is_served:
            self.close()

    def close(self) -> None:
        """Let it go."""
        transport = cast(ITCPTransport, self.transport)
        if self._outlet.is_busy:
            transport.abortConnection()
        else:
            transport.loseConnection()


@final
class ReplicaServer(ServerFactory):
    """The port of replication.

    @ivar connected: all that are connected now, strangers included.
    @ivar replicas: those of them that are slaves.
    @ivar refusals: logs strangers.
    @ivar max_per_second: how many bytes a slave is sent in a second; 0: any number.
    """

    noisy = False

    def __init__(
        self,
        reactor: Any,
        store: ReplicatedStore,
        options: StoreOptions,
        in_thread: InThread,
        wall_ms: Callable[[], int],
        membership: Membership,
        interface: str = "",
        security: HaSecurity = NO_SECURITY,
    ) -> None:
        """
        @param reactor: listens, and tells the time.
        @param store: an open store, as soon as there is a slave.
        @param in_thread: runs calls that may wait for the disk.
        @param membership: says who is a slave.
        @param interface: where to listen; empty for everywhere.
        @param security: what a slave has to get past.
        """
        self.clock: IReactorTime = reactor
        self._reactor = reactor
        self.store = store
        self.options = options
        self.in_thread = in_thread
        self.wall_ms = wall_ms
        self.connected: list[Replica] = []
        self.replicas: list[Replica] = []
        self._membership = membership
        self.refusals = RefusalLog(self.clock.seconds)
        membership.watch(self._recount)
        self.max_per_second = 0
        if options.ha_flow_control_enable:
            self.max_per_second = max(1, options.max_ha_transfer_byte_in_second)
        self._interface = interface
        self._security = security
        self._unproved = AddressRefusals(self.clock.seconds)
        self._port: PlainPort | None = None
        self._watchers: list[Callable[[], None]] = []
        self._acks: list[int] | None = None
        self._pushing: IDelayedCall | None = None
        self._looking = PeriodicCall(self.clock, "look at slaves", self._look)
        self._watch = StopWatch(self.clock.seconds)
        self._gone: list[Deferred[None]] = []

    def listen(self, port: int) -> int:
        """Accept slaves from now on; the port."""
        listening = PlainPort(
            self._reactor,
            self,
            "replication",
            FIRST_REPORT_SECONDS,
            self._security.port_tls,
        )
        found = listening.listen(self._interface, max(0, port))
        self._port = listening
        heartbeat = self.options.ha_send_heartbeat_interval / 1000
        self._watch.start()
        self._looking.start(min(LOOK_SECONDS, heartbeat / 2))
        return found

    @property
    def strangers(self) -> list[str]:
        """The addresses of connections that count for nothing."""
        return [each.address for each in self.connected if not each.is_slave]

    def buildProtocol(self, addr: IAddress | None) -> Replica | SecretDoor:
        """Somebody has connected."""
        secret = self._security.secret
        if secret is None:
            return Replica(self)
        handshake = MasterHandshake(secret.value, self._security.number())
        return SecretDoor(Replica(self), handshake, self._unproved)

    def appended(self) -> None:
        """Something was published: send it in the reactor's next round."""
        if self.connected and self._pushing is None:
            self._pushing = self.clock.callLater(0, self._push)

    def push(self) -> None:
        """Send all slaves some of what they lack, now: at the end of a turn."""
        for each in self.connected:
            each.push()

    def watch(self, reported: Callable[[], None]) -> None:
        """Call C{reported} after reports of slaves, and after one has gone."""
        self._watchers.append(reported)

    def acked(self, copies: int) -> int:
        """The position up to which the log is stored at least C{copies} times."""
        acks = self._acks
        if acks is None:
            found = [each.acked for each in self.replicas if each.counts]
            acks = self._acks = sorted(found, reverse=True)
        return acks[copies - 2] if len(acks) > copies - 2 else -1

    def in_sync(self, end: int) -> int:
        """How many copies are in sync with C{end}, the master's included."""
        return 1 + sum(each.is_in_sync(end) for each in self.replicas)

    def stop(self) -> Deferred[None]:
        """Accept no slave any more and let all go; fires when they are gone."""
        self._looking.stop()
        if self._pushing is not None:
            self._pushing.cancel()
            self._pushing = None
        port, self._port = self._port, None
        closed = maybeDeferred(lambda: port and port.stop())
        for each in list(self.connected):
            each.close()
        return closed.addCallback(lambda _: self._when_empty())

    def _when_empty(self) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        self._gone.append(done)
        self._check_empty()
        return done

    def _check_empty(self) -> None:
        if not self.connected:
            gone, self._gone = self._gone, []
            for done in gone:
                done.callback(None)

    def _push(self) -> None:
        self._pushing = None
        self.push()

    def _look(self) -> None:
        seconds = self._watch.lap()
        for each in list(self.connected):
            each.look(seconds)
        if len(self.connected) > len(self.replicas):
            self._membership.look_soon()

    def _recount(self, anew: bool) -> None:
        """The slaves may be others.

        @param anew: whether one that was a slave may be none any more.
        """
        hosts = {each.host for each in self.connected}
        slaves = {host for host in hosts if self._membership.is_slave(host)}
        for each in self.connected:
            self._admit(each, each.host in slaves or (each.is_slave and not anew))
        self.replicas = [each for each in self.connected if each.is_slave]
        self.has_reported()

    def _admit(self, replica: Replica, is_slave: bool) -> None:
        replica.admit(is_slave, is_slave or self._membership.serves_strangers)

    # Called by replicas.

    def joined(self, replica: Replica) -> None:
        """It is connected."""
        self.connected.append(replica)
        is_slave = self._membership.is_slave(replica.host)
        self._admit(replica, is_slave)
        if is_slave:
            self.replicas.append(replica)
            return
        self._membership.look_soon()

    def has_reported(self) -> None:
        """A slave has reported."""
        self._acks = None
        for watcher in self._watchers:
            watcher()

    def left(self, replica: Replica) -> None:
        """It has gone."""
        self.connected.remove(replica)
        if replica.is_slave:
            self.replicas.remove(replica)
            self.has_reported()
        self._check_empty()


classImplements(Replica, IReplica)
classImplements(ReplicaServer, IReplicaServer)
