"""A master and its slaves, ours and RocketMQ's, each with a directory of its own."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Final

from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import RocketbrokerError
from rocketbroker.files.disk import Disk
from rocketbroker.records.entries import FILLED_SIZE
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.wire.codes import RequestCode
from scripts.lab.javabroker import JavaBroker
from scripts.lab.servers import PATIENT, Server, free_base

#: Who made a broker: ours, or else it is a version of RocketMQ.
OURS: Final = "ours"

#: How long a slave may take to have what its master has, in seconds: slaves of
#: RocketMQ connect again after five seconds and report after five more, and the
#: machine may be busy.
MAX_SECONDS: Final = 120.0

#: So many bytes are compared at once.
PIECE: Final = 1 << 20

#: Codes below are hashes of tags, others are times in ms.
HASH_LIMIT: Final = 1 << 31

#: One entry of a queue: position, size, tags code.
Entry = tuple[int, int, int]


class Member:
    """One broker of a group: a master or a slave.

    @ivar maker: who made it.
    @ivar store: its directory.
    @ivar address: its main port: host and port.
    @ivar ha_port: where slaves connect.
    """

    def __init__(
        self, maker: str, number: int, folder: Path, **settings: object
    ) -> None:
        """
        @param number: its broker id.
        @param folder: for all that it has.
        """
        port = free_base() + 10
        self.maker = maker
        self.number = number
        self.store = folder / "store"
        self.address = f"127.0.0.1:{port}"
        self.ha_port = port + 1
        settings = {
            "brokerClusterName": "DefaultCluster",
            "brokerName": "broker-a",
            "brokerId": number,
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "listenPort": port,
            "haListenPort": port + 1,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
            "slaveReadEnable": "true",
            **PATIENT,
            **settings,
        }
        if number:
            settings["brokerRole"] = "SLAVE"
        self.server: Server | JavaBroker
        if maker == OURS:
            folder.mkdir()
            settings["metricsPromExporterPort"] = port - 5
            self.server = Server("rocketbroker", settings, folder, port)
        else:
            self.server = JavaBroker(maker, folder, settings)

    def __str__(self) -> str:
        return f"{'slave' if self.number else 'master'} {self.number} ({self.maker})"

    @property
    def pid(self) -> int:
        """Its process."""
        if isinstance(self.server, JavaBroker):
            return self.server.pid
        assert self.server.process is not None
        return self.server.process.pid

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.server.start()

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Stop it."""
        self.server.stop(how)

    def send_signal(self, how: int) -> None:
        """Send it a signal, if it is up."""
        self.server.send_signal(how)

    def set(self, **settings: object) -> None:
        """Change settings, for the next start."""
        self.server.set(**settings)

    def output(self) -> str:
        """What it has said."""
        if isinstance(self.server, JavaBroker):
            return self.server.output()
        log = self.server.log
        return log.read_text(errors="replace") if log.exists() else ""


class Group:
    """A master, its slaves and a name server.

    @ivar folder: for all that they have.
    @ivar names: the name server: host and port.
    """

    def __init__(self, master: str, *slaves: str, **settings: object) -> None:
        """
        @param master: who made it; see L{Member}.
        @param slaves: and them.
        @param settings: of all.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
        base = free_base()
        self.names = f"127.0.0.1:{base}"
        self.namesrv = Server(
            "namesrv",
            {"listenPort": base, "kvConfigPath": self.folder / "kvConfig.json"},
            self.folder,
            base,
        )
        self.members = [
            Member(
                maker,
                number,
                self.folder / f"broker-{number}",
                namesrvAddr=self.names,
                **settings,
            )
            for number, maker in enumerate((master, *slaves))
        ]
        self._client = Client(Settings(self.names, seconds=30.0))

    def sign(self, credentials: Credentials) -> None:
        """Ask with an account from now on."""
        self._client.close()
        settings = Settings(self.names, seconds=30.0, credentials=credentials)
        self._client = Client(settings)

    @property
    def master(self) -> Member:
        """The master."""
        return self.members[0]

    @property
    def slaves(self) -> list[Member]:
        """The slaves."""
        return self.members[1:]

    def stop(self, keep: Path | None = None) -> None:
        """Leave nothing running, and no files.

        @param keep: where they go, if they stay.
        """
        self._client.close()
        for member in self.members:
            member.stop(signal.SIGKILL)
        self.namesrv.stop(signal.SIGKILL)
        if keep is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            shutil.move(self.folder, keep)

    def runtime(self, member: Member) -> dict[str, str]:
        """What a broker says of itself."""
        code = RequestCode.GET_BROKER_RUNTIME_INFO
        answer = self._client.ask_server(member.address, code, {}, seconds=20)
        table: dict[str, str] = json.loads(answer.body)["table"]
        return table

    def end(self, member: Member) -> int:
        """The end of its log; -1 while it does not answer."""
        try:
            return int(self.runtime(member)["commitLogMaxOffset"])
        except RocketbrokerError:
            return -1

    def tell_topics(self, slave: Member) -> None:
        """Give a slave that is stopped the master's topics: it asks for them only a
        minute after its start."""
        name = Path("config", "topics.json")
        (slave.store / "config").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.master.store / name, slave.store / name)

    def dispatched(self, member: Member) -> int:
        """Up to where its queues have the log; -1 while it does not answer."""
        try:
            table = self.runtime(member)
        except RocketbrokerError:
            return -1
        return int(table["commitLogMaxOffset"]) - int(table["dispatchBehindBytes"])

    def wait_for(self, slave: Member) -> int:
        """Wait until a slave has what its master has now, in its queues, too; that
        position.

        @raise AssertionError: it does not come.
        """
        assert until(lambda: self.end(self.master) >= 0), self.master.output()[-3000:]
        wanted = self.end(self.master)
        if not until(lambda: self.dispatched(slave) >= wanted):
            raise AssertionError(
                f"{slave} is at {self.dispatched(slave)}, not at {wanted}:\n"
                f"{slave.output()[-3000:]}"
            )
        return wanted


def until(what: Callable[[], bool], seconds: float = MAX_SECONDS) -> bool:
    """Whether something comes in time."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


# What a master and a slave have, both stopped.


def log_differences(master: Path, slave: Path, end: int) -> Iterator[str]:
    """Where the log of a slave is not that of its master, from its first file on.

    @param end: the shorter of both published ends.
    """
    paths = sorted(path for path in (slave / "commitlog").iterdir() if path.is_file())
    if not paths:
        yield f"{slave} has no log"
    expected = int(paths[0].name) if paths else 0
    for path in paths:
        start = int(path.name)
        if start != expected:
            yield f"{slave} has nothing from {expected} to {start}"
        expected = start + path.stat().st_size
        wanted = min(expected, end) - start
        if wanted <= 0:
            continue
        at = first_difference(master / "commitlog" / path.name, path, wanted)
        if at >= 0:
            yield f"{path} differs from its master's at {start + at}"
    if expected < end:
        yield f"{slave} ends at {expected}, not at {end}"


def first_difference(left: Path, right: Path, size: int) -> int:
    """Where the first bytes of two files differ; -1 if they do not."""
    with open(left, "rb") as one, open(right, "rb") as other:
        for at in range(0, size, PIECE):
            count = min(PIECE, size - at)
            a, b = one.read(count), other.read(count)
            if a != b or len(a) < count:
                pairs = enumerate(zip_longest(a, b))
                return next((at + i for i, (x, y) in pairs if x != y), at + len(a))
    return -1


def queue_differences(
    master: Path, slave: Path, end: int, has_old: bool = False
) -> Iterator[str]:
    """Where the queues of a slave are not those of its master.

    @param end: the end of the slave's log; the master's may have more.
    @param has_old: whether one of them is RocketMQ's 4.9: after a kill it recovers
        before it knows the delay levels, and has hashes of tags for the times of
        messages that it had not dispatched (C{docs/facts/store.md}, trap 14).
    """
    ours, theirs = (StoreReader(Disk(), str(path)) for path in (master, slave))
    try:
        first = theirs.lowest
        for topic in sorted({*ours.topics(), *theirs.topics()}):
            for queue in sorted({*ours.queues(topic), *theirs.queues(topic)}):
                wanted = entries(ours, topic, queue, first, end)
                found = entries(theirs, topic, queue, first, end)
                if has_old and topic == SCHEDULE_TOPIC:
                    wanted, found = without_hashes(wanted, found)
                if wanted != found:
                    keys = sorted(wanted.items() ^ found.items())
                    yield (
                        f"{topic}/{queue}: {len(found)} entries, not {len(wanted)}; "
                        f"the first that differ: {keys[:4]}"
                    )
    finally:
        ours.close()
        theirs.close()


def entries(
    reader: StoreReader, topic: str, queue: int, first: int, end: int
) -> dict[int, Entry]:
    """The entries of a queue for a part of the log, by their offsets."""
    found: dict[int, Entry] = {}
    if queue not in reader.queues(topic):
        return found
    at = reader.min_offset(topic, queue)
    while some := reader.entries(topic, queue, at):
        for entry in some:
            if first <= entry[0] < end and entry[1] != FILLED_SIZE:
                found[at] = entry
            at += 1
    return found


def without_hashes(
    left: dict[int, Entry], right: dict[int, Entry]
) -> tuple[dict[int, Entry], dict[int, Entry]]:
    """The entries but for those that one of both has with a hash for a time."""

    def is_passed(at: int) -> bool:
        (*one, least), (*other, most) = sorted(
            (left[at], right[at]), key=lambda entry: entry[2]
        )
        return one == other and least < HASH_LIMIT <= most

    passed = set(filter(is_passed, left.keys() & right.keys()))
    return (
        {at: entry for at, entry in left.items() if at not in passed},
        {at: entry for at, entry in right.items() if at not in passed},
    )
