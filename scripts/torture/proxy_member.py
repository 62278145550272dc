"""Members of C{proxy.py}: official clients of gRPC that note what they do.

A note has a line for each message: its body, and the time in ms. A producer writes it
when its send is acknowledged; a simple consumer before it acknowledges the message, as
nobody knows what became of an acknowledgement that fails; a push consumer when its
listener has the message.

As a program, C{python -m scripts.torture.proxy_member ENDPOINT TOPIC ROLE NOTE}, this
is one member with the official client for Python. It does again what fails, as programs
do, until somebody ends it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import traceback
from itertools import count
from pathlib import Path
from typing import Any, Final, TextIO

from scripts.lab.javaclient import JavaError, Program, body_of
from scripts.lab.servers import environment
from scripts.torture.harness import now_ms

#: Seconds between two sends, and after something has failed.
PAUSE: Final = 0.005
REST: Final = 0.1

#: How long a message is invisible to others that the simple consumer has.
INVISIBLE_SECONDS: Final = 5

SEND: Final = "send"
SIMPLE: Final = "simple"
PUSH: Final = "push"
ROLES: Final = (SEND, SIMPLE, PUSH)


def group_of(topic: str, role: str) -> str:
    """The group of a consumer: each has all messages."""
    return f"G_{topic}_{role}"


class PythonMember:
    """A process with the official client for Python."""

    def __init__(self, endpoint: str, topic: str, role: str, note: Path) -> None:
        self._log = note.with_suffix(".log")
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-W", "ignore", "-m"),
                    *("scripts.torture.proxy_member", endpoint, topic, role, str(note)),
                ],
                stderr=log,
                env={**environment(), "HOME": str(note.parent)},
            )

    @property
    def problems(self) -> list[str]:
        """What has failed."""
        return self._log.read_text().splitlines()

    def stop(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()


class JavaMember:
    """A thread that lets the official client for Java do the same.

    @ivar problems: what it has raised.
    """

    def __init__(self, java: Program, topic: str, role: str, note: Path) -> None:
        self._java = java
        self._topic = topic
        self._is_over = threading.Event()
        self.problems: list[JavaError] = []
        self._thread: threading.Thread | None = None
        words: dict[str, Any] = {"name": role, "topic": topic}
        if role != SEND:
            words["group"] = group_of(topic, role)
        if role == PUSH:
            java(PUSH, file=str(note), **words)
            return
        java("producer" if role == SEND else SIMPLE, **words)
        work = {SEND: self._send, SIMPLE: self._take}[role]
        self._thread = threading.Thread(target=self._work, args=(work, note))
        self._thread.start()

    def _work(self, work: Any, note: Path) -> None:
        with open(note, "w") as lines:
            for number in count():
                if self._is_over.wait(PAUSE):
                    return
                try:
                    work(lines, number)
                except JavaError as problem:
                    self.problems.append(problem)
                    time.sleep(REST)

    def _send(self, lines: TextIO, number: int) -> None:
        self._java.send(SEND, self._topic, b"%d" % number)
        write(lines, str(number))

    def _take(self, lines: TextIO, _: int) -> None:
        milliseconds = INVISIBLE_SECONDS * 1000
        for message in self._java("receive", name=SIMPLE, invisibleMs=milliseconds):
            write(lines, body_of(message).decode())
            self._java("ack", name=SIMPLE, id=message["id"])

    def stop(self) -> None:
        """Do no more."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()


def write(lines: TextIO, body: str) -> None:
    """Note a message."""
    lines.write(f"{body} {now_ms()}\n")
    lines.flush()


# The program.


def send(client: Any, topic: str, lines: TextIO) -> None:
    """Send for ever."""
    from scripts.lab.official_python import made

    for number in count():
        time.sleep(PAUSE)
        try:
            client.send(made(topic, str(number)))
        except Exception as problem:  # the client raises several
            complain(problem)
            continue
        write(lines, str(number))


def take(client: Any, lines: TextIO) -> None:
    """Receive and acknowledge for ever."""
    while True:
        try:
            for message in client.receive(32, INVISIBLE_SECONDS) or ():
                write(lines, message.body.decode())
                client.ack(message)
        except Exception as problem:  # likewise
            complain(problem)


def complain(problem: Exception) -> None:
    """Tell what has failed, and rest."""
    print(f"{now_ms()} {problem}", file=sys.stderr, flush=True)
    time.sleep(REST)


def main() -> None:
    """Be one member."""
    from rocketmq import ConsumeResult, MessageListener

    from scripts.lab.official_python import Scene

    class Noted(MessageListener):  # type: ignore[misc]  # it has no types
        def consume(self, message: Any) -> Any:
            with lock:
                write(lines, message.body.decode())
            return ConsumeResult.SUCCESS

    endpoint, topic, role, note = sys.argv[1:]
    scene = Scene(endpoint, topic, is_tls=False)
    lock = threading.Lock()
    with open(note, "w") as lines:
        if role == SEND:
            send(scene.producer(), topic, lines)
        scene.group = group_of(topic, role)
        if role == SIMPLE:
            take(scene.simple(), lines)
        scene.push(Noted())
        threading.Event().wait()


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
    os._exit(1)  # the client's threads would not let it end
