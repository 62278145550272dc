#!/usr/bin/env python3
"""A broker against the model of one: sends, pulls, topics that come and go.

    python3 scripts/torture/model.py [--seconds 60] [--seed N] [--workers N]
                             [--extension off|on|both]

Some connections send, pull (requests 11 and 361), create, change and delete topics at
random, each one request at a time, while expired files are removed. Each answer is
compared with the model (C{rocketbroker.testing.simulation}). At the end all queues are
read from their beginning.

Prints seed, counts and each difference; exit status 1 if there is one. The seed gives
the same dice, not the same run: the order of answers is the broker's.

Queues with an extension are read by the owner alone. So half of the time goes to a
broker with enableConsumeQueueExt, and half to one without. Files are removed from a
minute after the start of the brokers on.
"""

from __future__ import annotations

import argparse
import random
import re
import selectors
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.records import batches, properties
from rocketbroker.records.ids import parse_offset_id
from rocketbroker.records.record import decode_all
from rocketbroker.testing.simulation.choices import MAX_QUEUES, Choices
from rocketbroker.testing.simulation.model import Model
from rocketbroker.testing.simulation.operations import (
    ASK_AGAIN,
    BUSY,
    DONE,
    Answer,
    Create,
    Delete,
    Done,
    Found,
    Message,
    Operation,
    Pull,
    Pulled,
    Send,
    Sent,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from scripts.lab.servers import Cluster

#: Connections, and topics.
CLIENTS: Final = 6
TOPICS: Final = ("red", "green", "blue", "white")

#: An answer may take so long.
ANSWER_SECONDS: Final = 20.0

#: So long after its acknowledgement a message is in its queue: a thousand times longer
#: than as a rule, as machines may be busy elsewhere.
VISIBLE_SECONDS: Final = 3.0

#: What a log says of an exception.
LINES_OF_FAULTS: Final = re.compile(r"(?:.*\n){1,2}.*Traceback.*\n(?:\s.*\n)*.*\n")

#: What else the log may say of a fault.
WARNINGS: Final = re.compile(r".*(?:#warn|#error|#critical|orker).*")

#: So many differences are enough.
MAX_DIFFERENCES: Final = 20

SEGMENT: Final = 256 << 10

#: Small files, so that many of them come and go, and are removed soon.
SMALL: Final[dict[str, object]] = {
    "cleanResourceInterval": 300,
    "mappedFileSizeCommitLog": SEGMENT,
    "mappedFileSizeConsumeQueue": 20 * 50,
    "mapperFileSizeBatchConsumeQueue": 46 * 50,
    "mappedFileSizeConsumeQueueExt": 4096,
    "deleteCommitLogFilesInterval": 10,
    "fileReservedTime": 0,
}


def command_of(operation: Operation) -> Command:
    """The request of an operation."""
    if isinstance(operation, Send):
        return _send(operation)
    if isinstance(operation, Pull):
        ext = {
            "consumerGroup": "readers",
            "topic": operation.topic,
            "queueId": str(operation.queue_id),
            "queueOffset": str(operation.offset),
            "maxMsgNums": str(operation.most),
            "sysFlag": "6" if operation.wait_ms else "4",
            "commitOffset": "0",
            "suspendTimeoutMillis": str(operation.wait_ms),
            "subscription": " || ".join(operation.tags) or "*",
            "subVersion": "0",
            "expressionType": "TAG",
        }
        code = RequestCode.PULL_MESSAGE
        if operation.is_lite:
            code = RequestCode.LITE_PULL_MESSAGE
        return Command(code, ext)
    if isinstance(operation, Delete):
        return Command(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": operation.topic})
    if isinstance(operation, Create):
        queues = str(operation.queues)
        ext = {
            "topic": operation.topic,
            "defaultTopic": "TBW102",
            "readQueueNums": queues,
            "writeQueueNums": queues,
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
            "attributes": "+queue.type=BatchCQ" if operation.is_batch else "",
        }
        return Command(RequestCode.UPDATE_AND_CREATE_TOPIC, ext)
    return Command(RequestCode.DELETE_EXPIRED_COMMITLOG, {})


def _send(operation: Send) -> Command:
    def text(message: Message) -> bytes:
        own = {"UNIQ_KEY": message.body.decode()[:40]}
        if message.tag:
            own["TAGS"] = message.tag
        return properties.encode(own)

    parts = [(0, each.body, text(each)) for each in operation.messages]
    is_batch = len(parts) > 1
    ext = {
        "a": "senders",
        "b": operation.topic,
        "c": "TBW102",
        "d": str(MAX_QUEUES),
        "e": str(operation.queue_id),
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": parts[0][2].decode(),
        "j": "0",
        "k": "false",
        "m": "true" if is_batch else "false",
    }
    code = RequestCode.SEND_BATCH_MESSAGE if is_batch else RequestCode.SEND_MESSAGE_V2
    return Command(code, ext, batches.encode(parts) if is_batch else parts[0][1])


def answer_of(operation: Operation, command: Command) -> Answer:
    """The answer to an operation."""
    ext = command.ext or {}
    if isinstance(operation, Send):
        if command.code != DONE:
            return Sent(command.code)
        ids = ext["msgId"].split(",")
        positions = tuple(parse_offset_id(each).position for each in ids)
        return Sent(DONE, int(ext["queueOffset"]), positions)
    if not isinstance(operation, Pull):
        return Done(command.code)
    if "nextBeginOffset" not in ext:
        return Pulled(command.code)
    found = [
        Found(
            each.queue_offset,
            each.position,
            Message(each.body, each.properties.get("TAGS", "")),
        )
        for whole in decode_all(command.body)
        for each in batches.unwrap(whole)
    ]
    following, first = int(ext["nextBeginOffset"]), int(ext["minOffset"])
    return Pulled(command.code, following, first, int(ext["maxOffset"]), tuple(found))


class Client:
    """A connection with at most one request under way.

    @ivar operation: that, if any.
    @ivar ticket: its ticket in the model.
    @ivar asked_at: when it was sent.
    """

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.operation: Operation | None = None
        self.ticket = 0
        self.asked_at = 0.0
        self._opaque = 0
        self._incoming = Connection()

    def ask(self, operation: Operation, ticket: int) -> None:
        """Send the request of an operation."""
        self.operation, self.ticket = operation, ticket
        self.asked_at = time.monotonic()
        self._opaque += 1
        command = command_of(operation)
        command.opaque = self._opaque
        self.socket.sendall(encode(command))

    def answer(self) -> Answer | None:
        """What has come; None if it is not whole yet."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the broker has closed a connection")
        for command in self._incoming.receive(data):
            if command.opaque == self._opaque and self.operation is not None:
                return answer_of(self.operation, command)
        return None


class Run:
    """One run against one broker.

    @ivar counts: of the operations that were answered, and of the pulls by code.
    @ivar differences: what was wrong.
    """

    def __init__(self, port: int, seed: str) -> None:
        dice = random.Random(seed)
        self.model = Model(SEGMENT, MAX_QUEUES)
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []
        self._choices = Choices(dice, self.model, TOPICS)
        self._clients = [Client(port) for _ in range(CLIENTS)]
        self._selector = selectors.DefaultSelector()
        for each in self._clients:
            self._selector.register(each.socket, selectors.EVENT_READ, each)
        #: Where the log ended at some times.
        self._ends: deque[tuple[float, int]] = deque()

    def go(self, until: Callable[[], bool]) -> None:
        """Do what the dice say until it is time; then wait for the last answers."""
        while not until() and len(self.differences) < MAX_DIFFERENCES:
            for client in self._clients:
                if client.operation is None:
                    operation = self._choices.next()
                    client.ask(operation, self.model.begin(operation))
            self._wait()
            self._show()
        while self.model.under_way:
            self._wait()

    def _show(self) -> None:
        """What was acknowledged some time ago has to be visible."""
        now, ends = time.monotonic(), self._ends
        if not ends or now > ends[-1][0] + VISIBLE_SECONDS / 10:
            ends.append((now, self.model.log_end))
        while ends and ends[0][0] <= now - VISIBLE_SECONDS:
            self.model.visible = max(self.model.visible, ends.popleft()[1])

    def _wait(self) -> None:
        for key, _ in self._selector.select(ANSWER_SECONDS):
            self._take(key.data)
        latest = time.monotonic() - ANSWER_SECONDS
        for client in self._clients:
            if client.operation is not None and client.asked_at < latest:
                raise TimeoutError(f"no answer: {client.operation!r:.500}")

    def _take(self, client: Client) -> Answer | None:
        """Compare what has come, if it is whole."""
        answer, operation = client.answer(), client.operation
        if answer is None or operation is None:
            return None
        if answer.code == BUSY:
            self.counts[f"{type(operation).__name__} refused"] += 1
            if isinstance(operation, Delete):
                # Nothing was done. The model knows one that begins and ends.
                client.ask(operation, client.ticket)
                return None
        client.operation = None
        self.counts[type(operation).__name__] += 1
        if isinstance(answer, Pulled):
            self.counts[f"pulls with code {answer.code}"] += 1
            self.counts["messages pulled"] += len(answer.found)
            self.counts["pulls of queues that had lost files"] += answer.first > 0
        for problem in self.model.end(client.ticket, answer):
            self.differences.append(problem)
            print(problem, flush=True)
        return answer

    def read_all(self) -> None:
        """Read all queues, by all connections, and by both requests."""
        time.sleep(VISIBLE_SECONDS)
        self.model.visible = self.model.log_end
        for number, client in enumerate(self._clients):
            for name in TOPICS:
                for queue_id in range(MAX_QUEUES):
                    self._read(client, Pull(name, queue_id, 0, is_lite=number == 0))

    def _read(self, client: Client, pull: Pull) -> None:
        """Read one queue to its end."""
        again = 0
        while again < 100:
            client.ask(pull, self.model.begin(pull))
            while (answer := self._take(client)) is None:
                pass
            assert isinstance(answer, Pulled)
            is_moved = answer.next_offset > pull.offset
            if answer.code != ASK_AGAIN and not is_moved:
                return
            again = 0 if is_moved else again + 1
            pull = pull._replace(offset=answer.next_offset)
        self.differences.append(f"{pull!r}: it does not go on")
        print(self.differences[-1])

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.socket.close()
        self._selector.close()


def by_workers(cluster: Cluster) -> int:
    """How many pulls workers have answered."""
    url = f"http://127.0.0.1:{cluster.broker_metrics}/metrics"
    with urlopen(url, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    found = [line for line in lines if line.startswith("rocketbroker_worker_pulls_t")]
    return int(sum(float(line.rsplit(" ", 1)[1]) for line in found))


def started(workers: int, extension: bool) -> Cluster:
    """A broker that removes expired files only when it is told to."""
    hour = (time.localtime().tm_hour + 12) % 24
    settings = {
        **SMALL,
        "workers": workers,
        "enableConsumeQueueExt": str(extension).lower(),
        "deleteWhen": f"{hour:02}",
    }
    return Cluster(**settings).start()


def compare(cluster: Cluster, seconds: float, seed: str, workers: int) -> bool:
    """Compare a broker with the model; whether there is no difference."""
    end = time.monotonic() + seconds
    with closing(Run(cluster.broker.port, seed)) as run:
        try:
            run.go(lambda: time.monotonic() > end)
            run.read_all()
            if workers:
                run.counts["pulls by workers"] = by_workers(cluster)
        except OSError as error:
            assert cluster.broker.process is not None
            status = cluster.broker.process.poll()
            run.differences.append(f"{error}; the broker's exit status: {status}")
            print(run.differences[-1])
    tracebacks = cluster.logs().count("Traceback")
    if run.differences or tracebacks:
        logs = cluster.logs()
        print(*LINES_OF_FAULTS.findall(logs)[:5], sep="\n")
        print(*WARNINGS.findall(logs)[-20:], sep="\n")
    counts = ", ".join(f"{key} {count}" for key, count in sorted(run.counts.items()))
    print(f"seed {seed}, {workers} workers: {counts}")
    print(f"{len(run.differences)} differences, {tracebacks} tracebacks", flush=True)
    return not run.differences and not tracebacks


def main() -> int:
    """Compare, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--extension", choices=("off", "on", "both"), default="both")
    words = parser.parse_args()
    print(f"seed {words.seed}", flush=True)
    kinds = {"off": [False], "on": [True], "both": [False, True]}[words.extension]
    clusters: dict[bool, Cluster] = {}
    good = []
    try:
        # All at once, as a broker cleans a minute after its start first.
        for kind in kinds:
            clusters[kind] = started(words.workers, kind)
        for kind, cluster in clusters.items():
            seed = f"{words.seed}, {'with' if kind else 'no'} extension"
            seconds = words.seconds / len(kinds)
            good.append(compare(cluster, seconds, seed, words.workers))
    finally:
        for cluster in clusters.values():
            cluster.stop()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
