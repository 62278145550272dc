"""Row of replication.py: what befalls a pair, and what its producers are told.

SYNC_MASTER with inSyncReplicas=2 and SYNC_FLUSH: two processes, and a proxy between
the slave and its master. In each episode, a producer notes each answer and its time,
and something befalls the pair: a blow that lasts for some time. Then the master is
killed (-9), while the blow lasts or when it is over, and so all that was acknowledged
before must be in the slave's store, as it is read, and as a copy of it has it that is
started as the master.

The fact sheet says what a send is answered (C{docs/facts/ha.md} 5): SEND_OK if the
slave has reported it, else FLUSH_SLAVE_TIMEOUT after C{slaveTimeout}. The time for
which the broker or the producer waited for a processor does not count, nor that for
which the master was stopped.
"""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.records import record
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record_head import MAGIC_BLANK
from rocketbroker.wire.codes import RequestCode, ResponseCode
from scripts.lab.pair import Group, Member, until
from scripts.lab.peers import Beside, Peer, create_topic, send_ext
from scripts.torture.harness import Words, judge, read_back
from scripts.torture.replication_load import QUEUES, TOPIC, Noted, Sent, producing
from scripts.torture.replication_proxy import FAIR, Proxy, Weather

#: How long a send waits for its copies, in seconds, and by how much each status may be
#: late.
TIMEOUT: Final = 3.0
LATE: Final = 1.1

#: What a clock's step may take away from a wait.
EARLY: Final = 0.98

#: A slave tries again five seconds after it has lost its master.
AGAIN: Final = 5.0 * LATE

#: So soon after a blow has ended that does not end connections, all is well again; and
#: so soon after it has begun, nothing is acknowledged any more.
SOON: Final = 1.0

#: How late anything may be where times are not judged, in seconds.
PATIENCE: Final = 60.0

#: So many episodes are played with one pair.
SERIES: Final = 10

SETTINGS: Final[dict[str, object]] = {
    "brokerRole": "SYNC_MASTER",
    "inSyncReplicas": 2,
    "flushDiskType": "SYNC_FLUSH",
    "slaveTimeout": int(TIMEOUT * 1000),
    "mappedFileSizeCommitLog": 4 << 20,
    "mappedFileSizeConsumeQueue": 40_000,
    "maxHashSlotNum": 5_000,
    "maxIndexNum": 20_000,
    "diskSpaceEnoughBytes": 1,
}


class Trio:
    """A pair with a proxy between them, and who takes over with a copy of the slave.

    @ivar is_timed: whether it is judged how late something is.
    @ivar serial: the number of the next message.
    @ivar sent: all that was sent.
    """

    def __init__(self, maker: str, of_slave: str, words: Words) -> None:
        self.is_timed = not words.quick
        settings = {**SETTINGS, "workers": words.workers}
        self.group = Group(maker, of_slave, **settings)
        self.master, self.slave = self.group.members
        self.proxy = Proxy(self.master.ha_port)
        self.slave.set(haMasterAddress=f"127.0.0.1:{self.proxy.port}")
        folder = self.group.folder / "heir"
        self.heir = Member(maker, 0, folder, **settings, namesrvAddr=self.group.names)
        self.serial = 1
        self.sent: dict[int, Sent] = {}

    def open(self) -> None:
        """Start both, for the first time."""
        self.group.namesrv.start()
        self.master.start()
        port = int(self.master.address.rpartition(":")[2])
        create_topic(port, TOPIC, QUEUES)
        self.group.tell_topics(self.slave)
        self.slave.start()
        # A slave without a log begins with its master's last file, so there has to be
        # something before it counts.
        peer = Peer(port)
        peer.ask(RequestCode.SEND_MESSAGE_V2, send_ext(TOPIC), b"%016d" % 0)
        peer.close()
        self.group.wait_for(self.slave)

    def again(self) -> None:
        """Start those again that have been killed."""
        self.proxy.weather = FAIR
        self.master.start()
        self.slave.start()
        self.group.wait_for(self.slave)

    def close(self, keep: Path | None) -> None:
        """Leave nothing running.

        @param keep: where all files go, if they stay.
        """
        self.heir.stop(signal.SIGKILL)
        self.group.stop(keep)
        self.proxy.stop()


# Blows.


class Blow(NamedTuple):
    """Something that befalls a pair.

    @ivar silences: nothing is acknowledged while it lasts.
    @ivar halts: nothing is answered either.
    @ivar again: how soon after its end all is acknowledged again, in seconds.
    """

    name: str
    begin: Callable[[Trio], object]
    end: Callable[[Trio], object]
    silences: bool
    again: float = SOON
    halts: bool = False


def weather(name: str, what: Weather, silences: bool, again: float = SOON) -> Blow:
    """A blow that the network deals."""

    def begin(trio: Trio) -> None:
        trio.proxy.weather = what

    def end(trio: Trio) -> None:
        trio.proxy.weather = FAIR

    return Blow(name, begin, end, silences, again)


BLOWS: Final = (
    Blow(
        "kill -9 of the slave",
        lambda trio: trio.slave.stop(signal.SIGKILL),
        lambda trio: trio.slave.start(),
        silences=True,
        again=AGAIN,
    ),
    weather("a stall to the master", Weather(to_master_stalls=True), True),
    Blow(
        "kill -9 of the master",
        lambda trio: trio.master.stop(signal.SIGKILL),
        lambda trio: trio.master.start(),
        silences=True,
        again=2 * AGAIN,
        halts=True,
    ),
    weather("a stall to the slave", Weather(to_slave_stalls=True), True),
    Blow(
        "SIGSTOP of the slave",
        lambda trio: trio.slave.send_signal(signal.SIGSTOP),
        lambda trio: trio.slave.send_signal(signal.SIGCONT),
        silences=True,
    ),
    weather("a cut", Weather(is_cut=True), True, AGAIN),
    Blow(
        "SIGSTOP of the master",
        lambda trio: trio.master.send_signal(signal.SIGSTOP),
        lambda trio: trio.master.send_signal(signal.SIGCONT),
        silences=True,
        halts=True,
    ),
    weather("200 ms of delay", Weather(delay=0.2), False),
    weather("1 MB/s", Weather(rate=1e6), False),
)


class Times(NamedTuple):
    """When a blow began, and when it ended, on the monotonic clock.

    @ivar lifted: when its end began: a slave may be back before it is ready.
    @ivar killed: when the master was.
    """

    begin: float
    lifted: float
    end: float
    killed: float


class Episode(NamedTuple):
    """What has come of one.

    @ivar faults: in sentences.
    @ivar statuses: how often each was answered.
    """

    name: str
    faults: list[str]
    statuses: Counter[str]
    seconds: float


def play(trio: Trio, blow: Blow, is_final: bool, dice: random.Random) -> Episode:
    """One episode.

    @param is_final: the master is killed while the blow lasts.
    """
    started = time.monotonic()
    port = int(trio.master.address.rpartition(":")[2])
    with Beside(producing(port, trio.master.pid, trio.serial)) as beside:
        time.sleep(dice.uniform(0.3, 1.0))
        begin = time.monotonic()
        blow.begin(trio)
        # Half of the blows last until sends have been given up.
        longest = TIMEOUT * LATE + 0.5
        time.sleep(dice.uniform(0.0, 0.5) + (longest if dice.random() < 0.5 else 0))
        lifted = end = float("inf")
        if not is_final:
            lifted = time.monotonic()
            blow.end(trio)
            end = time.monotonic()
            time.sleep(blow.again + dice.uniform(0.5, 1.0))
        killed = time.monotonic()
        trio.master.stop(signal.SIGKILL)
        noted: Noted = beside.end()
    trio.serial = max(noted.sent, default=trio.serial) + 1
    trio.sent.update(noted.sent)
    faults = [
        *wrong_answers(noted, blow, Times(begin, lifted, end, killed), trio.is_timed),
        *losses(trio),
    ]
    statuses = Counter(status(each) for each in noted.sent.values())
    name = f"{blow.name}{', then of the master' * is_final}"
    return Episode(name, faults, statuses, time.monotonic() - started)


def status(each: Sent) -> str:
    """What a send was answered."""
    return "no answer" if each.code is None else ResponseCode(each.code).name


# What producers were told.


def wrong_answers(
    noted: Noted, blow: Blow, times: Times, is_timed: bool
) -> Iterator[str]:
    """Sentences on what is not as the fact sheet says."""
    if not is_timed:
        blow = blow._replace(again=PATIENCE)
    late = TIMEOUT * LATE if is_timed else PATIENCE
    if not noted.sent:
        yield "nothing was sent"
    due = times.killed - (4 if is_timed else PATIENCE)
    unfinished = [n for n in noted.silent if noted.sent[n].begin < due]
    if unfinished:
        yield f"{len(unfinished)} sends were never answered"
    for number, each in sorted(noted.sent.items()):
        if each.code is None:
            continue
        why = wrong(each, noted, blow, times, late)
        if why:
            at = each.begin - times.begin
            yield (
                f"message {number}, sent {at:.3f} s after the begin: {status(each)} "
                f"after {each.seconds:.3f} s: {why}"
            )


def wrong(each: Sent, noted: Noted, blow: Blow, times: Times, late: float) -> str:
    """Why an answer is wrong; empty if it is not.

    @param late: how long it may take, in seconds.
    """
    took = each.seconds - noted.waited(each.begin, each.end)
    if blow.halts:
        took -= max(0.0, min(each.end, times.end) - max(each.begin, times.begin))
    is_hit = each.end >= times.begin and each.begin < times.end + blow.again
    if each.code == ResponseCode.FLUSH_SLAVE_TIMEOUT:
        if not blow.silences or not is_hit:
            return "nothing has kept it from being acknowledged"
        if each.seconds < TIMEOUT * EARLY:
            return "that is too early"
        return "" if took <= late else "that is too late"
    if each.code != ResponseCode.SUCCESS:
        return "that is nothing that it could be"
    silent = times.begin + SOON < each.begin and each.end < times.lifted
    if blow.silences and silent:
        return "the slave cannot have it"
    return "" if took <= late else "that is too late"


# What the slave has.


def losses(trio: Trio) -> Iterator[str]:
    """Stop the slave, and look for what was acknowledged: in its store, and in what a
    copy of it has that is started as the master."""
    trio.slave.send_signal(signal.SIGCONT)
    trio.slave.stop(signal.SIGTERM if trio.serial % 2 else signal.SIGKILL)
    promised = {n for n, each in trio.sent.items() if each.code == 0}
    yield from wrong_there(promised, in_log(trio.slave.store), "in the slave's log")
    shutil.rmtree(trio.heir.store, ignore_errors=True)
    shutil.copytree(trio.slave.store, trio.heir.store)
    trio.heir.start()
    try:
        found = served(trio.group.names)
    finally:
        trio.heir.stop()
    yield from wrong_there(promised, found, "with the slave as the master")


def wrong_there(promised: set[int], found: Iterable[int], where: str) -> Iterator[str]:
    """A sentence if something is missing, or there twice."""
    verdict = judge(promised, found)
    if not (verdict.is_good or not promised):
        yield f"SEND_OK {where}: {verdict}"
        yield from verdict.examples()


def in_log(store: Path) -> Iterator[int]:
    """The numbers of all messages in a log that nobody uses."""
    for path in sorted((store / "commitlog").iterdir()):
        data = path.read_bytes() if path.is_file() else b""
        at = 0
        while at + 8 <= len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            magic = int.from_bytes(data[at + 4 : at + 8], "big", signed=True)
            if not size or magic == MAGIC_BLANK or at + size > len(data):
                break
            try:
                message = record.decode(data, at)
            except Malformed:
                # It was killed in the middle of an append.
                break
            if message.topic == TOPIC:
                yield int(message.body[:16])
            at += size


def served(names: str) -> list[int]:
    """The numbers of all messages that a consumer gets."""
    with Client(Settings(names, attempts=20)) as client:
        # A Java broker says that it is ready a little before it is known.
        assert until(lambda: TOPIC in client.topics()), "the topic is not known"
    return [int(each.plain_body()[:16]) for each in read_back(names, TOPIC)]


def series(
    maker: str, of_slave: str, numbers: Iterable[int], words: Words
) -> Iterator[Episode]:
    """Episodes of one pair after the other.

    @param maker: of the master; see L{Member}.
    @param of_slave: and of the slave.
    @param numbers: of the episodes.
    """
    trio: Trio | None = None
    keep: Path | None = None
    try:
        for turn, number in enumerate(numbers):
            if trio is None or turn % SERIES == 0:
                if trio is not None:
                    trio.close(keep)
                trio = Trio(maker, of_slave, words)
                keep = words.kept(f"pair-{number}")
                trio.open()
            else:
                trio.again()
            blow = BLOWS[number % len(BLOWS)]
            dice = random.Random(words.seed * 1_000_003 + number)
            # A kill of the master, and then another one, is one.
            is_final = (number // len(BLOWS)) % 2 == 0 and not blow.halts
            yield play(trio, blow, is_final, dice)
    finally:
        if trio is not None:
            trio.close(keep)
