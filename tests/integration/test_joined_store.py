"""Processes that append to one store, and are killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable
from select import select

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.disk import Disk
from rocketbroker.records.record import decode_all
from rocketbroker.store.message_store import Store
from scripts.lab.servers import environment
from tests.integration.joining import SEGMENT
from tests.store.stores import STORE_HOST, Wall, draft, options

VERSION = 3
ROUNDS = 6


class KilledTests(SynchronousTestCase):
    """Two processes append to a store, as its owner does, and are killed."""

    timeout = 120

    def setUp(self) -> None:
        """A store with a queue."""
        self.root = os.path.abspath(self.mktemp())
        self.store = Store(
            Disk(),
            options(store_path_root_dir=self.root, mapped_file_size_commit_log=SEGMENT),
            Wall(),
            STORE_HOST,
            is_shared=True,
        )
        self.store.open()
        self.addCleanup(self.store.close)
        self.store.sharing.let_append(VERSION)
        self.queue = self.store.queue("T", 0)
        self.mine = 0

    def start(self) -> subprocess.Popen[str]:
        """Start a process; append until it does, too: somebody has to make segments."""
        words = [self.root, str(self.queue.slot), str(VERSION)]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.joining", *words],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        while not select([process.stdout], [], [], 0.005)[0]:
            self.append()
        self.assertIs(process.poll(), None, "it has ended")
        return process

    def kill(self, process: subprocess.Popen[str]) -> int:
        """Kill a process.

        @return: the last offset that it has told.
        """
        process.kill()
        told, _ = process.communicate()
        # The last line may be torn.
        whole = told.rpartition("\n")[0].split()
        return int(whole[-1]) if whole else 0

    def test_killed(self) -> None:
        """Whenever they are killed, all that they have told is stored, offsets are
        dense, and the others go on."""
        processes = [self.start(), self.start()]
        for number in range(ROUNDS):
            end = time.monotonic() + random.uniform(0.01, 0.1)
            while time.monotonic() < end:
                self.append()
            last = self.kill(processes[number % 2])
            self.append()
            self.dispatch()
            self.assertGreater(self.queue.max_offset, last)
            processes[number % 2] = self.start()
        for process in processes:
            self.kill(process)
        self.store.sharing.mend()
        self.dispatch()
        count = theirs = 0
        for offset, body in self.stored():
            self.assertEqual(offset, count)
            count += 1
            self.mine -= body == b"mine"
            theirs += body == b"theirs"
        self.assertEqual(count, self.queue.next_offset)
        self.assertEqual(self.mine, 0)
        self.assertGreater(theirs, 0)

    def append(self) -> None:
        """Append a message of the owner's, and dispatch some."""
        self.store.append([draft(self.queue, b"mine")])
        self.mine += 1
        self.store.dispatch(100_000)

    def dispatch(self) -> None:
        """Enter all."""
        while self.store.dispatched_position < self.store.published_position:
            self.store.dispatch(100_000)

    def stored(self) -> Iterable[tuple[int, bytes]]:
        """Queue offset and body of all messages."""
        offset = 0
        while offset < self.queue.max_offset:
            found = self.store.read(self.queue, offset, 1000, 1 << 20, None)
            for each in decode_all(b"".join(found.records)):
                yield each.queue_offset, each.body
            offset = found.next_offset
