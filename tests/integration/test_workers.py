"""A broker with workers: official clients, and processes that are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from threading import Event, Thread
from typing import TypeAlias
from urllib.error import HTTPError
from urllib.request import urlopen

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import RocketbrokerError
from rocketbroker.files.disk import Disk
from rocketbroker.files.processes import ProcessTable
from rocketbroker.records.record import decode_all
from rocketbroker.store.message_store import Store
from rocketbroker.store.sharing.append_lock import APPEND_NAME
from rocketbroker.store.sharing.joined_processes import JOINED_NAME
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from scripts.lab.javaclient import JavaClient, JavaError, body_of
from scripts.lab.servers import Cluster, ask, is_there, workers_of
from tests.broker.rig import send_ext
from tests.integration.javacase import fresh, until

WORKERS = 2
SENDERS = 4

#: Body, queue id and queue offset of a message.
Sent: TypeAlias = tuple[bytes, int, int]

RELAYED = "rocketbroker_worker_frames_relayed_total"

HOST = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F])

#: A process that takes a lock, and keeps it.
HOLDER = """
import fcntl, signal, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
signal.pause()
"""

#: A whole segment is read here.
SEGMENT = 64 << 20


class WorkersTests(SynchronousTestCase):
    """Two workers."""

    timeout = 300

    def setUp(self) -> None:
        """A broker with workers."""
        self.cluster = Cluster(workers=WORKERS, mappedFileSizeCommitLog=SEGMENT).start()
        self.addCleanup(self.cluster.stop)
        assert self.cluster.broker.process is not None
        self.owner = self.cluster.broker.process.pid
        self.assertTrue(until(self.all_up, 120), self.cluster.logs()[-2000:])
        self.workers = workers_of(self.owner)

    def all_up(self) -> bool:
        """Whether all workers have said how they do."""
        name = "rocketbroker_worker_resident_memory_bytes"
        return all(self.metric(name, n + 1) > 1 << 20 for n in range(WORKERS))

    def metric(self, name: str, worker: int) -> float:
        """A value of one worker."""
        url = f"http://127.0.0.1:{self.cluster.broker_metrics}/metrics"
        with urlopen(url, timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        found = [
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if line.startswith(f"{name}{{") and f'worker="{worker}"' in line
        ]
        return found[0] if found else 0.0

    def kill_one(self) -> None:
        """Kill a worker; there is another in its place."""
        before = workers_of(self.owner)
        killed = random.choice(before)
        os.kill(killed, signal.SIGKILL)

        def replaced() -> bool:
            now = workers_of(self.owner)
            return len(now) == WORKERS and killed not in now

        self.assertTrue(until(replaced, 120), self.cluster.logs()[-2000:])

    def test_javaClient(self) -> None:
        """The official client sends and consumes, is asked about transactions, shares
        queues, and goes on after each worker was killed."""
        java = JavaClient("5.3.3", self.cluster.names, self.cluster.folder)
        self.addCleanup(java.stop)
        topic, group = fresh("T"), fresh("G")
        java("createTopic", topic=topic, queues=4, address=self.cluster.address)
        java("producer", name="p", group="P", retries=2)
        for name in ("c", "d"):
            java("consumer", name=name, group=group, topic=topic)
        acknowledged = set()

        def send(count: int) -> None:
            done, end = 0, time.monotonic() + 120
            while done < count and time.monotonic() < end:
                body = b"%d" % random.getrandbits(60)
                try:
                    java.send("p", topic, body)
                except JavaError:
                    time.sleep(0.2)
                    continue
                acknowledged.add(body)
                done += 1
            self.assertEqual(done, count, self.cluster.logs()[-2000:])

        def received() -> set[bytes]:
            both = (java.received(name, 0, 0) for name in ("c", "d"))
            return {body_of(message) for got in both for message in got}

        send(40)
        for _ in range(3):
            self.kill_one()
            send(40)
        self.assertTrue(
            until(lambda: acknowledged <= received(), 180), self.cluster.logs()[-2000:]
        )

        def shared() -> bool:
            # Members may have lost and found each other while workers were killed.
            send(4)
            return all(java.received(name, 1, 1) for name in ("c", "d"))

        self.assertTrue(until(shared, 90), self.cluster.logs()[-2000:])
        for name, least in (("connections", 1), ("restarts_total", 3)):
            # Workers say from time to time how they do.
            enough = partial(self.is_sum, f"rocketbroker_worker_{name}", least)
            self.assertTrue(until(enough), name)

    def is_sum(self, name: str, least: int) -> bool:
        """Whether the values of all workers are so many together."""
        return sum(self.metric(name, n + 1) for n in range(WORKERS)) >= least

    def test_killedWorkers(self) -> None:
        """While producers send, workers are killed: what was acknowledged is stored, at
        the offset that was told and in the order in which it was sent, and offsets are
        dense."""
        topic = fresh("T")
        acknowledged: list[list[Sent]] = [[] for _ in range(SENDERS)]
        over = Event()

        def send(mine: list[Sent]) -> None:
            with Client(Settings(self.cluster.names, seconds=10)) as client:
                producer = Producer(client)
                while not over.is_set():
                    body = b"%d" % random.getrandbits(62)
                    try:
                        result = producer.send(Message(topic, body))
                    except RocketbrokerError:
                        continue
                    if result.status == 0:
                        place = result.queue.queue_id, result.queue_offset
                        mine.append((body, *place))

        with Client(Settings(self.cluster.names, seconds=30)) as client:
            client.create_topic(topic, queues=4)
        senders = [Thread(target=send, args=(mine,)) for mine in acknowledged]
        for sender in senders:
            sender.start()
        try:
            for _ in range(4):
                before = [len(mine) for mine in acknowledged]
                self.kill_one()

                def all_go_on(before: list[int] = before) -> bool:
                    pairs = zip(acknowledged, before, strict=True)
                    return all(len(mine) > count + 50 for mine, count in pairs)

                self.assertTrue(until(all_go_on, 120), self.cluster.logs()[-2000:])
        finally:
            over.set()
            for sender in senders:
                sender.join()
        relayed = sum(self.metric(RELAYED, n + 1) for n in range(WORKERS))
        self.assertLess(relayed, sum(map(len, acknowledged)) / 2)
        self.cluster.broker.stop()
        stored = self.stored(topic)
        for mine in acknowledged:
            for body, queue_id, offset in mine:
                self.assertEqual(stored[queue_id][offset], body)
            for queue_id in stored:
                offsets = [offset for _, at, offset in mine if at == queue_id]
                self.assertEqual(offsets, sorted(offsets))

    def stored(self, topic: str) -> dict[int, list[bytes]]:
        """The bodies of a topic by queue, each at its offset."""
        options = StoreOptions(
            store_path_root_dir=str(self.cluster.store),
            mapped_file_size_commit_log=SEGMENT,
        )
        store = Store(Disk(), options, lambda: int(time.time() * 1000), HOST)
        store.open()
        self.addCleanup(store.close)
        found: dict[int, list[bytes]] = {}
        for queue_id in range(4):
            queue, bodies = store.queue(topic, queue_id), found.setdefault(queue_id, [])
            while len(bodies) < queue.max_offset:
                got = store.read(queue, len(bodies), 1000, 1 << 20, None)
                for message in decode_all(b"".join(got.records)):
                    self.assertEqual(message.queue_offset, len(bodies))
                    bodies.append(message.body)
            self.assertEqual(queue.next_offset, len(bodies))
        return found

    def test_killedOwner(self) -> None:
        """When the broker is killed its workers end, and the next one starts."""
        self.cluster.broker.stop(signal.SIGKILL)
        self.assertTrue(
            until(lambda: not any(map(is_there, self.workers)), 60), self.workers
        )
        self.cluster.broker.start()
        assert self.cluster.broker.process is not None
        self.owner = self.cluster.broker.process.pid
        self.assertTrue(until(self.all_up, 120), self.cluster.logs()[-2000:])

    def test_heldAppendLock(self) -> None:
        """While another process holds the append lock sends are refused at once, all
        else is answered, and C{/healthz} names that process; then all goes on."""

        def sent() -> int:
            command = Command(310, send_ext("T"), b"body")
            return ask(self.cluster.broker.port, command).code

        self.assertEqual(sent(), 0)
        file = Disk().open(str(self.cluster.store / APPEND_NAME))
        self.addCleanup(file.close)
        self.assertTrue(file.lock_alone(10))
        for _ in range(WORKERS + 1):
            self.assertEqual(sent(), ResponseCode.SYSTEM_BUSY)
        query = Command(RequestCode.GET_MAX_OFFSET, {"topic": "T", "queueId": "0"})
        self.assertEqual(ask(self.cluster.broker.port, query).code, 0)
        words = f"process {os.getpid()}, no worker of this broker, has held"
        self.assertTrue(until(lambda: words in self.health(), 10), self.health())
        file.unlock()
        self.assertEqual(sent(), 0)
        self.assertTrue(until(lambda: self.health() == "ok\n", 10), self.health())
        self.assertEqual(workers_of(self.owner), self.workers)

    def health(self) -> str:
        """What C{/healthz} says."""
        url = f"http://127.0.0.1:{self.cluster.broker_metrics}/healthz"
        try:
            with urlopen(url, timeout=30) as answer:
                return str(answer.read().decode())
        except HTTPError as error:
            return error.read().decode()

    def test_orphans(self) -> None:
        """The start after a broker was killed ends a worker of it that was stopped, and
        one that hangs in the append lock."""
        os.kill(self.workers[0], signal.SIGSTOP)
        self.cluster.broker.stop(signal.SIGKILL)
        words = [sys.executable, "-c", HOLDER, str(self.cluster.store / APPEND_NAME)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            self.assertEqual(holder.stdout.readline(), b"held\n")
            identity = ProcessTable().identity(holder.pid)
            with open(self.cluster.store / JOINED_NAME, "a") as file:
                file.write(f"{holder.pid} {identity}\n")
            self.cluster.broker.start()
            self.assertEqual(holder.wait(10), -signal.SIGKILL)
        self.assertFalse(is_there(self.workers[0]))
        self.assertIn("had not ended, and were killed", self.cluster.logs())

    def test_stop(self) -> None:
        """A clean stop ends the workers, too; signals that all get are the owner's."""
        for worker in self.workers:
            os.kill(worker, signal.SIGINT)
            os.kill(worker, signal.SIGTERM)
        time.sleep(0.2)
        self.assertEqual(workers_of(self.owner), self.workers)
        self.assertEqual(self.cluster.broker.stop(), -signal.SIGTERM)
        self.assertFalse(any(map(is_there, self.workers)))
