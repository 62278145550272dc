"""The official Python client for RocketMQ 5 (gRPC), in a process of its own.

    python3 -m scripts.lab.official_python ENDPOINT SCENARIO TOPIC [tls | WORD ...]

It does one scenario on a fresh topic, and prints C{passed}. Its log goes below HOME.
C{OFFICIAL_CREDENTIALS} in the environment is who it is: C{name:secret}.
With TLS it checks certificates: C{GRPC_DEFAULT_SSL_ROOTS_FILE_PATH} in the environment
names those that it trusts.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

#: How long a scenario may take, in seconds.
SECONDS: Final = 60.0

#: Who it is.
CREDENTIALS: Final = "OFFICIAL_CREDENTIALS"

#: What it logs.
LOG: Final = Path("~/logs/rocketmq_python/rocketmq_client.log")

#: How long a message is invisible to others that is received.
INVISIBLE_SECONDS: Final = 15


def made(topic: str, body: str, **more: Any) -> Any:
    """A message."""
    message = Message()
    message.topic = topic
    message.body = body.encode()
    for name, value in more.items():
        setattr(message, name, value)
    return message


def receive(consumer: Any, count: int) -> list[Any]:
    """The next messages, acknowledged."""
    found: list[Any] = []
    end = time.monotonic() + SECONDS
    while len(found) < count:
        assert time.monotonic() < end, [message.body for message in found]
        for message in consumer.receive(32, INVISIBLE_SECONDS) or ():
            consumer.ack(message)
            found.append(message)
    return found


class Listener(MessageListener):  # type: ignore[misc]  # it has no types
    """Takes messages; fails with those that begin with C{again}, once each."""

    def __init__(self) -> None:
        self.found: queue.Queue[Any] = queue.Queue()

    def consume(self, message: Any) -> Any:
        """Take one."""
        self.found.put(message)
        again = message.body.startswith(b"again") and message.delivery_attempt == 1
        return ConsumeResult.FAILURE if again else ConsumeResult.SUCCESS


class Committing(TransactionChecker):  # type: ignore[misc]  # likewise
    """Commits what it is asked about."""

    def __init__(self) -> None:
        self.asked: queue.Queue[Any] = queue.Queue()

    def check(self, message: Any) -> Any:
        """Commit."""
        self.asked.put(message)
        return TransactionResolution.COMMIT


class Scene:
    """One scenario's clients.

    @ivar words: what else the scenario is told.
    """

    def __init__(
        self, endpoint: str, topic: str, is_tls: bool, words: Sequence[str] = ()
    ) -> None:
        name, _, secret = os.environ.get(CREDENTIALS, "a:b").partition(":")
        self.configuration = ClientConfiguration(endpoint, Credentials(name, secret))
        self._is_tls = is_tls
        self.topic = topic
        self.words = words
        self.group = f"G_{topic}"
        self._running: list[Any] = []

    def start(self, client: Any) -> Any:
        """Start a client, which is stopped at the end."""
        client.startup()
        self._running.append(client)
        return client

    def producer(self, checker: Any = None) -> Any:
        """A producer."""
        return self.start(
            Producer(self.configuration, (self.topic,), checker, self._is_tls)
        )

    def simple(self, expression: Any = None) -> Any:
        """A simple consumer."""
        wanted = {self.topic: expression or FilterExpression()}
        return self.start(
            SimpleConsumer(
                self.configuration, self.group, wanted, 5, tls_enable=self._is_tls
            )
        )

    def push(self, listener: Any) -> Any:
        """A push consumer."""
        wanted = {self.topic: FilterExpression()}
        return self.start(
            PushConsumer(
                self.configuration,
                self.group,
                listener,
                wanted,
                tls_enable=self._is_tls,
            )
        )

    def stop(self) -> None:
        """Stop them."""
        for client in reversed(self._running):
            client.shutdown()


def normal(scene: Scene) -> None:
    """Bodies, tags, keys and properties arrive; a filter by tag holds."""
    consumer, producer = scene.simple(FilterExpression("a || b")), scene.producer()
    for number in range(20):
        tag = "abc"[number % 3]
        message = made(scene.topic, f"body {number}", tag=tag, keys=f"k{number}")
        message.add_property("n", str(number))
        assert producer.send(message).message_id
    found = receive(consumer, 14)
    wanted = {f"body {n}".encode() for n in range(20) if n % 3 != 2}
    assert {message.body for message in found} == wanted
    for message in found:
        assert message.keys == {f"k{message.properties['n']}"}, message
        assert message.delivery_attempt == 1


def fifo(scene: Scene) -> None:
    """Messages of a group come in their order."""
    producer = scene.producer()
    for number in range(10):
        producer.send(made(scene.topic, str(number), message_group="g"))
    listener = Listener()
    scene.push(listener)
    found = [listener.found.get(timeout=SECONDS).body for _ in range(10)]
    assert found == [str(number).encode() for number in range(10)], found


def delay(scene: Scene) -> None:
    """A message comes when it is due; one that is recalled does not."""
    consumer, producer = scene.simple(), scene.producer()
    due = int(time.time()) + 3
    producer.send(made(scene.topic, "due", delivery_timestamp=due))
    later = made(scene.topic, "recalled", delivery_timestamp=due + 2)
    handle = producer.send(later).recall_handle
    assert producer.recall_message(scene.topic, handle)
    assert [message.body for message in receive(consumer, 1)] == [b"due"]
    assert time.time() >= due - 1
    assert not consumer.receive(32, INVISIBLE_SECONDS)


def transaction(scene: Scene) -> None:
    """What is committed arrives, also by a check; what is rolled back does not."""
    checker = Committing()
    producer, consumer = scene.producer(checker), scene.simple()
    for body in ("committed", "rolled back", "checked"):
        half = producer.begin_transaction()
        producer.send(made(scene.topic, body), half)
        if body == "committed":
            half.commit()
        elif body == "rolled back":
            half.rollback()
    found = receive(consumer, 2)
    assert {message.body for message in found} == {b"committed", b"checked"}
    assert checker.asked.get(timeout=1).body == b"checked"


def retry(scene: Scene) -> None:
    """What a push consumer fails with comes again, and so does what rests."""
    producer = scene.producer()
    listener = Listener()
    consumer = scene.push(listener)
    producer.send(made(scene.topic, "again"))
    attempts = [listener.found.get(timeout=SECONDS).delivery_attempt for _ in "12"]
    assert attempts == [1, 2], attempts
    consumer.shutdown()
    simple = scene.simple()
    producer.send(made(scene.topic, "rests"))
    (message,) = receive_one(simple)
    simple.change_invisible_duration(message, 10)
    before = message.delivery_attempt
    (message,) = receive_one(simple)
    assert message.delivery_attempt > before, message
    simple.ack(message)


def receive_one(consumer: Any) -> list[Any]:
    """The next message, not acknowledged."""
    end = time.monotonic() + SECONDS
    while not (found := consumer.receive(1, INVISIBLE_SECONDS)):
        assert time.monotonic() < end
    return list(found)


class Slow(MessageListener):  # type: ignore[misc]  # likewise
    """Takes as long as it is told for each message."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begun: list[bytes] = []
        self.done: queue.Queue[bytes] = queue.Queue()

    def consume(self, message: Any) -> Any:
        """Take one."""
        self.begun.append(message.body)
        time.sleep(self._seconds)
        self.done.put(message.body)
        return ConsumeResult.SUCCESS


def slow(scene: Scene) -> None:
    """Messages whose listener is slow come once.

    Its words: for how long it has each, and for how long none may come after that.
    """
    seconds, after = map(float, scene.words)
    listener = Slow(seconds)
    scene.push(listener)
    producer = scene.producer()
    sent = [b"0", b"1", b"2"]
    for body in sent:
        producer.send(made(scene.topic, body.decode()))
    done = [listener.done.get(timeout=seconds + SECONDS) for _ in sent]
    time.sleep(after)
    assert sorted(done) == sorted(listener.begun) == sent, listener.begun


def steady(scene: Scene) -> None:
    """Sends until standard input ends, and receives; a proxy may be another meanwhile.

    What fails is done again, as programs do. All that was acknowledged arrives.
    """
    producer, consumer = scene.producer(), scene.simple()
    found: set[bytes] = set()
    sent: set[bytes] = set()
    is_last, is_over = threading.Event(), threading.Event()

    def wait() -> None:
        sys.stdin.read()
        is_last.set()

    def take() -> None:
        while not is_over.is_set():
            try:
                for message in consumer.receive(32, INVISIBLE_SECONDS) or ():
                    consumer.ack(message)
                    found.add(message.body)
            except Exception as problem:  # the client raises several
                print(f"receive: {problem}", file=sys.stderr)
                time.sleep(0.2)

    taking = threading.Thread(target=take)
    threading.Thread(target=wait, daemon=True).start()
    taking.start()
    end = time.monotonic() + SECONDS
    try:
        rest = 20
        while rest:
            assert time.monotonic() < end, len(sent)
            body = str(len(sent))
            try:
                assert producer.send(made(scene.topic, body)).message_id
            except Exception as problem:
                print(f"send: {problem}", file=sys.stderr)
                time.sleep(0.2)
                continue
            sent.add(body.encode())
            if len(sent) == 20:
                print("sending", flush=True)
            rest -= is_last.is_set()
            time.sleep(0.02)
        while sent - found:
            assert time.monotonic() < end, sent - found
            time.sleep(0.1)
    finally:
        is_over.set()
        taking.join()


def refused(scene: Scene) -> None:
    """A send or a receive is refused: its words say which, and why it is.

    Why a route is refused stands only in the client's log.
    """
    what, *words = scene.words
    try:
        if what == "send":
            scene.producer().send(made(scene.topic, "x"))
        else:
            scene.simple().receive(1, INVISIBLE_SECONDS)
    except Exception as problem:  # the client raises several
        said = f"{problem}\n{LOG.expanduser().read_text()}"
        assert " ".join(words) in said, said
    else:
        raise AssertionError("it was not refused")


SCENARIOS: Final[dict[str, Callable[[Scene], None]]] = {
    "steady": steady,
    "normal": normal,
    "fifo": fifo,
    "delay": delay,
    "transaction": transaction,
    "retry": retry,
    "slow": slow,
    "refused": refused,
}


def main() -> int:
    """Do one."""
    endpoint, scenario, topic, *more = sys.argv[1:]
    scene = Scene(endpoint, topic, more == ["tls"], more)
    try:
        SCENARIOS[scenario](scene)
    finally:
        scene.stop()
    print("passed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
