"""Producers and members of groups while all servers are restarted."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking import Client, Settings
from rocketbroker.threads import Session, connect
from scripts.lab.servers import Cluster, environment

#: How long anything may take; nothing is asserted about it.
SECONDS = 60.0

COMMAND = (sys.executable, "-m", "rocketbroker.cli.command", "message")

#: All that read topic T.
READERS = ("session", "group", "alone")


class RestartTests(SynchronousTestCase):
    """Our broker and name server, stopped as an operator does."""

    def setUp(self) -> None:
        """A topic of one queue, which a session, a group and no group read."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        self.got: dict[str, list[str]] = {name: [] for name in READERS}
        with Client(Settings(self.cluster.names)) as client:
            client.create_topic("T", queues=1)
        self.mq = connect(self.cluster.names)
        self.addCleanup(self.mq.close)
        reading = threading.Thread(target=self.read, args=(self.mq,), daemon=True)
        reading.start()
        self.follow("group", "-g", "G")
        self.follow("alone")
        self.pipe = self.command("send", "T", stdin=subprocess.PIPE)

    def read(self, mq: Session) -> None:
        """Acknowledge what comes, until the session is closed."""
        with mq.consumer("T", "S", start="earliest") as messages:
            for message in messages:
                self.got["session"].append(message.text)
                message.ack()

    def command(self, *words: str, stdin: int | None = None) -> subprocess.Popen[bytes]:
        """A verb of C{rocketbroker message}, until the test is over."""
        with self.log().open("ab") as log:
            process = subprocess.Popen(
                [*COMMAND, *words],
                env={**environment(), "ROCKETMQ_NAMESRV": self.cluster.names},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.addCleanup(self.end, process)
        return process

    def log(self) -> Path:
        """What the commands say."""
        return self.cluster.folder / "commands.log"

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End a command."""
        process.terminate()
        process.communicate(timeout=SECONDS)

    def follow(self, name: str, *words: str) -> None:
        """Read with the command line."""
        process = self.command("receive", "T", "--follow", *words)
        output = process.stdout
        assert output is not None

        def read() -> None:
            for line in output:
                self.got[name].append(line.decode().strip())

        threading.Thread(target=read, daemon=True).start()

    def send(self, text: str) -> None:
        """Send with the session, and a line of the pipe."""
        assert self.pipe.stdin is not None
        self.pipe.stdin.write(f"pipe {text}\n".encode())
        self.pipe.stdin.flush()
        self.mq.send("T", f"session {text}")

    def wait(self, condition: Callable[[], bool]) -> None:
        """Until something is so."""
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, (self.got, self.log().read_text())
            time.sleep(0.01)

    def check(self, *texts: str) -> None:
        """Wait until all readers have all that was sent."""
        sent = {f"{by} {text}" for by in ("session", "pipe") for text in texts}
        self.wait(lambda: all({*self.got[name]} == sent for name in READERS))

    def test_allRideOverRestarts(self) -> None:
        """Of the only broker, and of both; a send waits meanwhile. Outages are said,
        and not again and again."""
        with self.assertLogs("rocketbroker.client", "WARNING") as logs:
            self.restart()
        self.assertIs(self.pipe.poll(), None)
        told = [*logs.output, *self.log().read_text().splitlines()]
        self.assertLessEqual(len(told), 20, told)

    def restart(self) -> None:
        """Send before, between, and while nobody is there."""
        self.send("1")
        self.check("1")
        self.cluster.broker.stop()
        self.cluster.broker.start()
        self.send("2")
        self.check("1", "2")
        self.cluster.broker.stop()
        self.cluster.namesrv.stop()
        waiting = threading.Thread(target=self.send, args=("3",), daemon=True)
        waiting.start()
        self.cluster.namesrv.start()
        self.cluster.broker.start()
        waiting.join(SECONDS)
        self.check("1", "2", "3")
