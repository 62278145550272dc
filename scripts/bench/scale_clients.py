"""Rows of scale.py: many clients, and those that ask for much."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Callable, Iterator

from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.lab.peers import (
    BODY,
    STEADY_SECONDS,
    Beside,
    Peer,
    Stopped,
    Target,
    children,
    cpu,
    create_topic,
    fill,
    heartbeat,
    memory,
    offered,
    pull_ext,
    send_ext,
    steady,
    wait_for,
    waited,
)
from scripts.lab.rows import Figure
from scripts.lab.targets import Scale

TOPIC = "Scale"
FILTERED = "Filtered"
GROUP = "members"

#: As many under way as one connection of the fairness row asks at once.
FLOOD = 400

#: How often a client sends its heartbeat, in seconds, as the Java client does.
HEARTBEAT_SECONDS = 30.0

#: How many processes hold the idle clients, so that none needs too many descriptors.
HOLDERS = 4

#: How many members the group of an idle client has.
MEMBERS = 10

#: What passes one message of a hundred of L{fill}.
EXPRESSION = "a = 7 AND (b IS NULL OR b <> 'x')"


class Members:
    """Members of one group, as far as the broker notices: each reads its notices, and
    asks for the group's members after them, one request at a time.

    @ivar notices: how many have come.
    @ivar asked: how often the members were asked for.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._poll = select.epoll()
        self._peers: dict[int, Peer] = {}
        #: Of each that waits for an answer, whether it asks once more afterwards.
        self._asking: dict[int, bool] = {}
        ext = {"consumerGroup": GROUP}
        self._ask = encode(Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ext))
        self.notices = 0
        self.asked = 0

    def join(self, number: int) -> None:
        """One more."""
        peer = Peer(self._port)
        body = heartbeat(f"127.0.0.1@{number}#{number * 7919}", GROUP, TOPIC)
        peer.socket.sendall(encode(Command(RequestCode.HEART_BEAT, {}, body)))
        self._peers[peer.fileno()] = peer
        self._poll.register(peer.fileno(), select.EPOLLIN)

    def read(self, seconds: float) -> bool:
        """Read what has come; whether anything has, within that time."""
        ready = self._poll.poll(seconds)
        for number, _ in ready:
            for command in self._peers[number].receive():
                if command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
                    self.notices += 1
                    self._rebalance(number)
                # A heartbeat's answer has no body.
                elif command.body and self._asking.pop(number):
                    self._rebalance(number)
        return bool(ready)

    def _rebalance(self, number: int) -> None:
        """Ask for the members, or do so once more when the answer has come."""
        if number in self._asking:
            self._asking[number] = True
            return
        self._asking[number] = False
        self.asked += 1
        self._peers[number].socket.sendall(self._ask)

    def leave(self) -> None:
        """All at once."""
        for peer in self._peers.values():
            peer.close()

    def left(self) -> bool:
        """Whether the broker knows none any more."""
        with contextlib.closing(Peer(self._port)) as peer:
            ext = {"consumerGroup": GROUP}
            answer = peer.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ext)
            return GROUP.encode() not in answer.body and b"@" not in answer.body


def members(scale: Scale) -> Iterator[Figure | str]:
    """Members join one group as fast as they can, and leave it all at once."""

    def measure(target: Target) -> list[Figure]:
        count = scale.of(2000, 60)
        create_topic(target.port, TOPIC)
        create_topic(target.port, f"{TOPIC}-others")
        work = steady(target, f"{TOPIC}-others")
        with Beside(work) as beside:
            time.sleep(0.5)
            begin, before = time.monotonic(), cpu(target.pid)
            time.sleep(scale.of(3, 1))
            share = (cpu(target.pid) - before) / (time.monotonic() - begin)
            beside.end()
        # The steady client begins anew, with the members.
        with Beside(work) as beside:
            begin, before = time.monotonic(), cpu(target.pid)
            group = Members(target.port)
            for number in range(count):
                group.join(number)
                if number % 20 == 0:
                    group.read(0)
            while group.read(1.0):
                pass
            joined = cpu(target.pid) - before - share * (time.monotonic() - begin)
            group.leave()
            while not group.left():
                time.sleep(0.2)
            seconds = time.monotonic() - begin
            spent = cpu(target.pid) - before - share * seconds
            waits = beside.end()
        return [
            Figure("CPU of the server, joins", joined, "s"),
            Figure("CPU of the server, all", spent, "s", 1.5),
            *waited(waits, p99=50),
            Figure("notices", group.notices, ""),
            Figure("requests for the members", group.asked, ""),
        ]

    return scale.beside_java(measure)


def subscribed(port: int) -> Peer:
    """A client whose group wants what the expression passes."""
    peer = Peer(port)
    body = heartbeat("127.0.0.1@1", "sql", FILTERED, EXPRESSION)
    peer.done(RequestCode.HEART_BEAT, {}, body)
    return peer


def pulls(port: int) -> Callable[[Stopped], float]:
    """Another client: the longest that it waits for one message, in seconds."""

    def work(stopped: Stopped) -> float:
        peer = Peer(port)
        peer.done(RequestCode.HEART_BEAT, {}, heartbeat("127.0.0.1@2", "light", TOPIC))
        ext = pull_ext(TOPIC, "light", "TAG")
        longest = 0.0
        while not stopped():
            begin = time.monotonic()
            answer = peer.ask(RequestCode.PULL_MESSAGE, ext)
            longest = max(longest, time.monotonic() - begin)
            assert answer.code == ResponseCode.SUCCESS, answer
            time.sleep(0.005)
        return longest

    return work


def prepare(target: Target, count: int) -> None:
    """The topics and messages of the rows with SQL."""
    create_topic(target.port, FILTERED, 1)
    create_topic(target.port, TOPIC)
    fill(target.port, FILTERED, count)
    fill(target.port, TOPIC, 100)
    # Until it is in the queues.
    time.sleep(0.5)


def fairness(scale: Scale) -> Iterator[Figure | str]:
    """One connection asks for much at once, and another for little."""

    def measure(target: Target) -> list[Figure]:
        prepare(target, scale.of(100_000, 5_000))
        flood = scale.of(FLOOD, 20)
        greedy = subscribed(target.port)
        ext = pull_ext(FILTERED, "sql", "SQL92")
        frame = encode(Command(RequestCode.PULL_MESSAGE, ext))
        worst = 0.0
        for _ in range(scale.of(3, 1)):
            with Beside(pulls(target.port)) as beside:
                time.sleep(0.3)
                begin = time.monotonic()
                greedy.socket.sendall(frame * flood)
                for _ in range(flood):
                    greedy.answer()
                seconds = time.monotonic() - begin
                worst = max(worst, beside.end())
        return [
            Figure("longest pull of another client", worst * 1000, "ms", 100),
            Figure("all SQL pulls", seconds, "s"),
        ]

    return scale.beside_java(measure)


def read_all(peer: Peer, count: int, stopped: Stopped) -> int:
    """Read by the expression again and again; how many messages were scanned."""
    scanned = at = 0
    while not stopped():
        ext = pull_ext(FILTERED, "sql", "SQL92", at)
        after = int(
            (peer.ask(RequestCode.PULL_MESSAGE, ext).ext or {})["nextBeginOffset"]
        )
        scanned += after - at
        at = after if after < count else 0
    return scanned


def sql(scale: Scale) -> Iterator[Figure | str]:
    """One reader whose expression passes 1 %, alone and beside sends."""

    def measure(target: Target) -> list[Figure]:
        count, seconds = scale.of(100_000, 5_000), scale.of(40, 3) / 10
        prepare(target, count)
        reader = subscribed(target.port)

        def rate() -> float:
            with Beside(offered(target.port, TOPIC, 3000)) as sender:
                time.sleep(seconds)
                found: float = sender.end()
            return found

        rate()
        begin, before = time.monotonic(), cpu(target.pid)
        until = begin + seconds
        scanned = read_all(reader, count, lambda: time.monotonic() > until)
        cost = (cpu(target.pid) - before) / scanned
        alone = rate()
        with Beside(lambda stopped: read_all(reader, count, stopped)) as beside:
            shared = rate()
            read = beside.end()
        return [
            Figure("CPU of a scanned message", cost * 1e6, "us", 2),
            Figure("sends a second alone", alone, ""),
            Figure("sends a second beside a reader", shared, ""),
            Figure("of those kept", shared / alone * 100, "%", 90, least=True),
            Figure("messages a second scanned meanwhile", read / seconds, ""),
        ]

    return scale.beside_java(measure)


def holding(port: int, numbers: range, every: float) -> Callable[[Stopped], int]:
    """Clients that send heartbeats and nothing else, consumers and producers; how many
    were answered."""

    def work(stopped: Stopped) -> int:
        answered = 0
        frames, peers = [], []
        for number in numbers:
            group = f"idle-{number // MEMBERS}"
            body = heartbeat(f"127.0.0.1@{number}", group, TOPIC)
            if number % 2:
                data = {"clientID": f"127.0.0.1@{number}", "consumerDataSet": []}
                body = json.dumps(
                    data | {"producerDataSet": [{"groupName": group}]}
                ).encode()
            frames.append(encode(Command(RequestCode.HEART_BEAT, {}, body)))
            peers.append(Peer(port))
            peers[-1].ask(RequestCode.HEART_BEAT, {}, body)
        begin, sent = time.monotonic(), 0
        while not stopped():
            due = int((time.monotonic() - begin) / every * len(peers))
            for number in range(sent, due):
                at = number % len(peers)
                peers[at].socket.sendall(frames[at])
                peers[at].answer()
                answered += 1
            sent = due
            time.sleep(0.01)
        return answered

    return work


def sends(target: Target, sender: Peer, peers: list[Peer], count: int) -> float:
    """Let a message come to each queue of many; the server's CPU time in seconds.

    The messages have a key of their own, as those of all official clients.

    @param peers: clients, each of which holds a pull at a queue of its own meanwhile.
    """
    for number, peer in enumerate(peers):
        ext = pull_ext(f"{TOPIC}-{number // 4}", f"held-{number}", "TAG")
        ext |= {"queueId": str(number % 4), "sysFlag": "6"}
        answer = sender.done(
            RequestCode.GET_MAX_OFFSET,
            {"topic": ext["topic"], "queueId": ext["queueId"]},
        )
        ext["queueOffset"] = (answer.ext or {})["offset"]
        ext["suspendTimeoutMillis"] = "60000"
        peer.socket.sendall(encode(Command(RequestCode.PULL_MESSAGE, ext)))
    time.sleep(0.5)
    before = cpu(target.pid)
    for number in range(count):
        begin = time.monotonic()
        ext = send_ext(f"{TOPIC}-{number // 4}", number % 4)
        ext["i"] += f"UNIQ_KEY\x01{time.time_ns():032X}\x02"
        sender.socket.sendall(encode(Command(RequestCode.SEND_MESSAGE_V2, ext, BODY)))
        assert sender.answer().code == ResponseCode.SUCCESS
        time.sleep(max(0.0, begin + STEADY_SECONDS - time.monotonic()))
    for peer in peers:
        assert peer.answer().code == ResponseCode.SUCCESS
    return cpu(target.pid) - before


def idle(scale: Scale) -> Iterator[Figure | str]:
    """Clients that only send heartbeats; then pulls that are held."""
    count, seconds = scale.of(10_000, 100), scale.of(60, 1)
    with scale.ours() as target:
        create_topic(target.port, TOPIC)
        with contextlib.closing(Peer(target.port)) as peer:
            peer.done(RequestCode.HEART_BEAT, {}, heartbeat("a", "idle", TOPIC))
        time.sleep(1)
        before, before_workers = memory(target.pid), memory_of_workers(target.pid)
        each = count // HOLDERS
        with contextlib.ExitStack() as stack:
            holders = []
            for at in range(0, count, each):
                work = holding(target.port, range(at, at + each), HEARTBEAT_SECONDS)
                holders.append(stack.enter_context(Beside(work)))
            assert wait_for(lambda: open_files(target.pid) >= count), "not connected"
            time.sleep(seconds / 2)
            used = memory(target.pid) - before
            by_workers = memory_of_workers(target.pid) - before_workers
            begin, spent = time.monotonic(), cpu(target.pid)
            time.sleep(seconds)
            spent = (cpu(target.pid) - spent) / (time.monotonic() - begin)
            answered = sum(holder.end() for holder in holders)
        yield Figure("CPU of the server", spent * 100, "%", 5.6)
        yield Figure("memory of a connection", used * 1024 / count, "KiB", 2.8)
        if by_workers:
            yield Figure("the same in its worker", by_workers * 1024 / count, "KiB")
        yield Figure("heartbeats answered", answered, "")
    with scale.ours() as target:
        pulls, rounds = scale.of(1000, 20), scale.of(10, 1)
        for number in range(pulls // 4):
            create_topic(target.port, f"{TOPIC}-{number}")
        peers = [Peer(target.port) for _ in range(pulls)]
        # The first messages make the files of their queues, and the first pulls groups;
        # a worker that knows neither relays them.
        sender = Peer(target.port)
        for _ in range(3):
            sends(target, sender, peers, pulls)
        woken = sent = 0.0
        for _ in range(rounds):
            # In turn, as the machine's speed and the broker's regular work vary.
            woken += sends(target, sender, peers, pulls)
            sent += sends(target, sender, [], pulls)
        cost = (woken - sent) / pulls / rounds
        yield Figure("CPU of a held pull's wake-up", cost * 1e6, "us", 60)
        yield Figure("CPU of its send", sent / pulls / rounds * 1e6, "us")


def memory_of_workers(pid: int) -> float:
    """The same as L{memory}, of all workers of a broker."""
    return sum(map(memory, children(pid)))


def open_files(pid: int) -> int:
    """How many descriptors a process and its workers have open."""
    return sum(len(os.listdir(f"/proc/{each}/fd")) for each in [pid, *children(pid)])
