"""The official Python client for RocketMQ 5 (gRPC) on a lead.

    python3 -m scripts.lab.python_driver ENDPOINT

It reads one JSON command a line, does it, answers one JSON line, and decides nothing;
java/grpc/GrpcDriver.java knows the same commands. Its log goes below HOME.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable
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
from rocketmq.grpc_protocol import FilterType

#: A command, with what it needs.
Command = dict[str, Any]


def shown(message: Any) -> dict[str, Any]:
    """A message as an answer has it."""
    return {
        "id": message.message_id,
        "topic": message.topic,
        "body": base64.b64encode(message.body).decode(),
        "tag": message.tag,
        "keys": " ".join(sorted(message.keys)),
        "group": message.message_group,
        "times": message.delivery_attempt,
        "born": message.born_timestamp,
        "at": int(time.time() * 1000),
        "properties": message.properties,
    }


def wanted(command: Command) -> dict[str, Any]:
    """What a consumer subscribes to."""
    is_sql = command.get("kind") == "SQL92"
    kind = FilterType.SQL if is_sql else FilterType.TAG
    expression = FilterExpression(command.get("expression", "*"), kind)
    return {command["topic"]: expression}


class Listener(MessageListener):  # type: ignore[misc]  # it has no types
    """Keeps messages; fails with bad ones as often as it was told.

    It counts itself: where order is kept this client gives a message again without
    counting.
    """

    def __init__(self, fails: int) -> None:
        self.box: list[dict[str, Any]] = []
        self._fails = fails

    def consume(self, message: Any) -> Any:
        """Take one."""
        self.box.append(shown(message))
        times = sum(seen["id"] == message.message_id for seen in self.box)
        if "bad" in message.properties and times <= self._fails:
            return ConsumeResult.FAILURE
        return ConsumeResult.SUCCESS


class Checker(TransactionChecker):  # type: ignore[misc]  # likewise
    """Ends a transaction as its message says."""

    def __init__(self) -> None:
        self.box: list[dict[str, Any]] = []

    def check(self, message: Any) -> Any:
        """Say how one ends."""
        self.box.append(shown(message))
        ends = {
            "COMMIT": TransactionResolution.COMMIT,
            "ROLLBACK": TransactionResolution.ROLLBACK,
        }
        unknown = TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED
        return ends.get(message.properties["checked"], unknown)


class Driver:
    """All clients of the process, by name."""

    def __init__(self, endpoint: str) -> None:
        self._settings = ClientConfiguration(
            endpoint, Credentials("a", "b"), request_timeout=20
        )
        self._clients: dict[str, Any] = {}
        self._boxes: dict[str, list[dict[str, Any]]] = {}
        self._held: dict[str, Any] = {}
        self.commands: Final[dict[str, Callable[[Command], Any]]] = {
            "producer": self.producer,
            "send": self.send,
            "recall": self.recall,
            "push": self.push,
            "received": self.received,
            "simple": self.simple,
            "receive": self.receive,
            "ack": self.ack,
            "invisible": self.invisible,
            "stop": self.stop,
        }

    def _start(self, name: str, client: Any) -> None:
        client.startup()
        self._clients[name] = client

    def producer(self, command: Command) -> None:
        """Start a producer."""
        checker = Checker()
        self._boxes[command["name"]] = checker.box
        given = checker if command.get("checks") else None
        made = Producer(self._settings, (command["topic"],), given)
        self._start(command["name"], made)

    def send(self, command: Command) -> dict[str, Any]:
        """Send a message, ending its transaction if it has one."""
        producer = self._clients[command["name"]]
        message = Message()
        message.topic = command["topic"]
        message.body = base64.b64decode(command["body"])
        if "tag" in command:
            message.tag = command["tag"]
        for key in command.get("keys", "").split():
            message.keys = key  # one more
        if "group" in command:
            message.message_group = command["group"]
        if "delayMs" in command:
            at = int(time.time() * 1000) + command["delayMs"]
            # It knows seconds only.
            message.delivery_timestamp = (at + 999) // 1000
        for key, value in command.get("properties", {}).items():
            message.add_property(key, value)
        if "local" in command:
            transaction = producer.begin_transaction()
            receipt = producer.send(message, transaction)
            if command["local"] == "COMMIT":
                transaction.commit()
            if command["local"] == "ROLLBACK":
                transaction.rollback()
        else:
            receipt = producer.send(message)
        return {"id": receipt.message_id, "handle": receipt.recall_handle}

    def recall(self, command: Command) -> Any:
        """Recall a message that waits for its time."""
        producer = self._clients[command["name"]]
        return producer.recall_message(command["topic"], command["handle"])

    def push(self, command: Command) -> None:
        """Start a push consumer."""
        listener = Listener(command.get("fails", 0))
        self._boxes[command["name"]] = listener.box
        made = PushConsumer(self._settings, command["group"], listener, wanted(command))
        self._start(command["name"], made)

    def received(self, command: Command) -> list[dict[str, Any]]:
        """What a listener or a checker has been given."""
        box = self._boxes[command["name"]]
        end = time.monotonic() + command.get("timeoutMs", 0) / 1000
        while len(box) < command.get("atLeast", 0) and time.monotonic() < end:
            time.sleep(0.005)
        return list(box)

    def simple(self, command: Command) -> None:
        """Start a simple consumer."""
        seconds = command.get("awaitMs", 5000) // 1000
        made = SimpleConsumer(
            self._settings, command["group"], wanted(command), seconds
        )
        self._start(command["name"], made)

    def receive(self, command: Command) -> list[dict[str, Any]]:
        """Receive messages, which it keeps."""
        consumer = self._clients[command["name"]]
        seconds = command.get("invisibleMs", 15000) // 1000
        found = consumer.receive(command.get("most", 16), seconds) or []
        self._held.update({message.message_id: message for message in found})
        return [shown(message) for message in found]

    def ack(self, command: Command) -> None:
        """Acknowledge a message."""
        self._clients[command["name"]].ack(self._held.pop(command["id"]))

    def invisible(self, command: Command) -> None:
        """Change for how long a message is invisible."""
        message = self._held[command["id"]]
        consumer = self._clients[command["name"]]
        consumer.change_invisible_duration(message, command["ms"] // 1000)

    def stop(self, command: Command) -> None:
        """Shut one down."""
        self._clients.pop(command["name"]).shutdown()


def main() -> int:
    """Carry out commands until there are no more."""
    driver = Driver(sys.argv[1])
    for line in sys.stdin:
        answer: dict[str, Any]
        try:
            command = json.loads(line)
            answer = {"ok": driver.commands[command["do"]](command)}
        except Exception as problem:  # the client raises several
            answer = {
                "error": type(problem).__name__,
                "code": getattr(problem, "code", None) or 0,
                "text": str(problem),
            }
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
