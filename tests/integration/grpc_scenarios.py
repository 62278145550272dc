"""What an official gRPC client does before a proxy, feature by feature.

A scenario is a function that is given somebody with a client of one kind, and that
raises if something is not as it should be. What a client lacks ends its scenario with
an error of the kind C{Missing}.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from scripts.lab.javaclient import JavaError
from tests.integration.javacase import until
from tests.integration.proxied import PATIENCE, User, text, texts

#: What a proxy answers: there is no such topic. A client tells one of both, or its own
#: words with the topic's name.
TOPIC_NOT_FOUND: Final = (40402, "TOPIC_NOT_FOUND")

#: A group whose failed messages come back after a second.
SOON: Final[dict[str, Any]] = {
    "groupRetryPolicy": {
        "type": "EXPONENTIAL",
        "exponentialRetryPolicy": {"initial": 1000, "max": 2000, "multiplier": 1},
    }
}

#: What rounding may take from times of clients that know seconds only.
ROUNDED_MS: Final = 1000


def same(found: object, wanted: object) -> None:
    """Both are equal."""
    assert found == wanted, f"{found!r} is not {wanted!r}"


def send_ten(user: User, topic: str) -> dict[str, str]:
    """Send messages with all that one can carry; their ids by their bodies."""
    producer = user.producer(topic)
    sent = {}
    for number in range(10):
        body = f"{number} \u4e2d"
        words = {"tag": "t", "keys": f"a{number} b", "properties": {"x": "y"}}
        sent[body] = user.send(producer, topic, body, **words)["id"]
    return sent


def whole(messages: list[Any], topic: str, sent: dict[str, str]) -> None:
    """Messages have arrived once, with all that they carry."""
    same({text(message): message["id"] for message in messages}, sent)
    same(len(messages), len(sent))
    for message in messages:
        same(set(message["keys"].split()), {f"a{text(message)[0]}", "b"})
        same(message["tag"], "t")
        same(message["properties"], {"x": "y"})
        same(message["times"], 1)
        same(message["topic"], topic)


def normal(user: User) -> None:
    """Messages arrive at a simple consumer, once, with all that they carry."""
    topic = user.topic("NORMAL")
    consumer = user.simple(topic, user.group())
    sent = send_ten(user, topic)
    whole(user.take(consumer, 10), topic, sent)


def push(user: User) -> None:
    """And at push consumers: one that was there, and one that came later."""
    topic = user.topic("NORMAL")
    early = user.push(topic)
    sent = send_ten(user, topic)
    late = user.push(topic)
    for consumer in (early, late):
        whole(user.received(consumer, 10), topic, sent)


def refusals(user: User) -> None:
    """A topic that is not there is not found; by the route a producer knows which
    messages a topic takes, and sends no others."""
    topic = user.topic("NORMAL")
    producer = user.producer(topic)
    error = refused(user, producer, "Nowhere")
    code, name = TOPIC_NOT_FOUND
    assert error.code == code or name in error.text or "Nowhere" in error.text, error
    for words in ({"group": "g"}, {"delayMs": 1000}):
        error = refused(user, producer, topic, **words)
        assert "type" in error.text.lower(), error


def refused(user: User, producer: str, topic: str, **words: Any) -> JavaError:
    """Why a message cannot be sent."""
    try:
        user.send(producer, topic, "x", **words)
    except JavaError as error:
        return error
    raise AssertionError(f"{topic} {words} was sent")


def sharing(user: User) -> None:
    """Members of a group share its messages; one that has gone leaves all of them to
    the other."""
    topic, group = user.topic("NORMAL", queues=4), user.group()
    members = [user.simple(topic, group) for _ in range(2)]
    producer = user.producer(topic)
    bodies = sorted(str(number) for number in range(12))
    for body in bodies:
        user.send(producer, topic, body)
    seen: list[str] = []
    for member in (*members, *members):
        for message in user.client("receive", name=member, most=4):
            user.client("ack", name=member, id=message["id"])
            seen.append(text(message))
    user.client("stop", name=members[0])
    left = user.take(members[1], 12 - len(seen))
    same(sorted([*seen, *texts(left)]), bodies)


def filters(user: User) -> None:
    """A consumer is given what it wants by tags or by SQL."""
    topic = user.topic("NORMAL")
    sql = "n > 2 AND TAGS <> 'c'"
    tags = user.simple(topic, user.group(), expression="a || c")
    numbers = user.simple(topic, user.group(), expression=sql, kind="SQL92")
    producer = user.producer(topic)
    for number in range(8):
        words = {"tag": "abcd"[number % 4], "properties": {"n": str(number)}}
        user.send(producer, topic, str(number), **words)
    same(set(texts(user.take(tags, 4))), {"0", "2", "4", "6"})
    same(set(texts(user.take(numbers, 4))), {"3", "4", "5", "7"})


def ordered(user: User) -> None:
    """Messages of a message group come to a simple consumer in their order; until one
    is acknowledged, none of its queue comes."""
    topic = user.topic("FIFO", queues=1)
    group = user.group(consumeMessageOrderly=True)
    producer, consumer = user.producer(topic), user.simple(topic, group)
    for number in range(6):
        for key in ("left", "right"):
            user.send(producer, topic, f"{key}{number}", group=key)
    (held,) = user.receive(consumer, 1, most=1, invisibleMs=60_000).values()
    same(user.client("receive", name=consumer), [])
    user.client("ack", name=consumer, id=held["id"])
    got = [held, *user.take(consumer, 11)]
    in_order(got, {"left": "012345", "right": "012345"})


def ordered_push(user: User) -> None:
    """And to a push consumer."""
    got = pushed_in_order(user, 0)
    in_order(got, {"left": "012345", "right": "012345"})


def ordered_failure(user: User) -> None:
    """A message that fails holds up those behind it in its message group."""
    got = pushed_in_order(user, 1)
    in_order(got, {"left": "0122345", "right": "012345"})


def pushed_in_order(user: User, fails: int) -> list[Any]:
    """What a push consumer is given of two message groups, one of which fails once at
    its third message."""
    topic = user.topic("FIFO")
    group = user.group(consumeMessageOrderly=True, **SOON)
    producer = user.producer(topic)
    consumer = user.push(topic, group, fails=fails)
    for number in range(6):
        for key in ("left", "right"):
            bad = {"bad": "1"} if (key, number) == ("left", 2) else {}
            words = {"group": key, "properties": {"n": "0", **bad}}
            user.send(producer, topic, f"{key}{number}", **words)
    return user.received(consumer, 12 + fails)


def in_order(got: list[Any], wanted: dict[str, str]) -> None:
    """Messages have come in this order, by message group."""
    for key, numbers in wanted.items():
        seen = [text(message) for message in got if message["group"] == key]
        same(seen, [key + number for number in numbers])


def delay(user: User) -> None:
    """A message with a time of delivery comes then and not before."""
    topic = user.topic("DELAY")
    consumer, producer = user.simple(topic, user.group()), user.producer(topic)
    begun = time.time() * 1000
    delays = {"soon": 2000, "later": 5000}
    for body, delay_ms in delays.items():
        user.send(producer, topic, body, delayMs=delay_ms)
    got = user.take(consumer, 2)
    same(sorted(texts(got)), sorted(delays))
    for message in got:
        assert message["at"] - begun > delays[text(message)] - ROUNDED_MS, message


def recall(user: User) -> None:
    """A message that was recalled before its time does not come."""
    topic = user.topic("DELAY")
    consumer, producer = user.simple(topic, user.group()), user.producer(topic)
    answer = user.send(producer, topic, "recalled", delayMs=4000)
    handle = answer["handle"]
    recalled = user.client("recall", name=producer, topic=topic, handle=handle)
    same(recalled, answer["id"])
    user.send(producer, topic, "later", delayMs=5000)
    same(texts(user.take(consumer, 1)), ["later"])
    same(user.client("receive", name=consumer), [])


def transactions(user: User) -> None:
    """What is committed arrives, and what is rolled back does not."""
    topic = user.topic("TRANSACTION")
    consumer, producer = (
        user.simple(topic, user.group()),
        user.producer(topic, checks=True),
    )
    for local in ("ROLLBACK", "COMMIT"):
        words = {"local": local, "properties": {"checked": "nothing"}}
        user.send(producer, topic, local, **words)
    same(texts(user.take(consumer, 1)), ["COMMIT"])
    same(user.client("receive", name=consumer), [])


def check_back(user: User) -> None:
    """A producer that has not ended a transaction is asked, and its answer counts."""
    topic = user.topic("TRANSACTION")
    consumer, producer = (
        user.simple(topic, user.group()),
        user.producer(topic, checks=True),
    )
    for checked in ("ROLLBACK", "COMMIT"):
        words = {"local": "UNKNOWN", "properties": {"checked": checked}}
        user.send(producer, topic, checked, **words)
    same(texts(user.take(consumer, 1)), ["COMMIT"])

    def asked() -> set[str]:
        return set(texts(user.received(producer, 0)))

    assert until(lambda: asked() == {"ROLLBACK", "COMMIT"}, PATIENCE), asked()
    # An answer that comes late may be asked for twice, and what it commits come twice.
    assert "ROLLBACK" not in texts(user.client("receive", name=consumer))


def retry(user: User) -> None:
    """A message that fails comes back; the others are not held up."""
    topic = user.topic("NORMAL")
    consumer = user.push(topic, user.group(**SOON), fails=2)
    producer = user.producer(topic)
    user.send(producer, topic, "bad", properties={"bad": "1"})
    user.send(producer, topic, "good")
    got = user.received(consumer, 4)
    same([m["times"] for m in got if text(m) == "bad"], [1, 2, 3])
    same([m["times"] for m in got if text(m) == "good"], [1])


def dead_letters(user: User) -> None:
    """A message that fails is a dead letter after the last time that its group
    allows."""
    topic = user.topic("NORMAL")
    group = user.group(retryMaxTimes=1, **SOON)
    consumer = user.push(topic, group, fails=99)
    producer = user.producer(topic)
    user.send(producer, topic, "dead", keys="dead", properties={"bad": "1"})
    same(user.found(f"%DLQ%{group}", "dead"), [b"dead"])
    same([m["times"] for m in user.received(consumer, 2)], [1, 2])


def ordered_dead_letters(user: User) -> None:
    """Where order is kept the client itself makes a dead letter, and what was behind it
    comes. How often it tries before is its own part: Python's reads this only of one
    kind of backoff, Node's only of the other."""
    topic = user.topic("FIFO")
    group = user.group(consumeMessageOrderly=True, retryMaxTimes=1)
    consumer = user.push(topic, group, fails=99)
    producer = user.producer(topic)
    bad = {"bad": "1"}
    user.send(producer, topic, "dead", group="g", keys="dead", properties=bad)
    user.send(producer, topic, "behind", group="g")
    same(user.found(f"%DLQ%{group}", "dead"), [b"dead"])

    def seen() -> list[str]:
        return texts(user.received(consumer, 0))

    assert until(lambda: "behind" in seen(), PATIENCE), seen()
    same(seen().count("behind"), 1)


def unacknowledged(user: User) -> None:
    """What a simple consumer does not acknowledge comes back after the time that it
    has said; what it does acknowledge is done."""
    topic = user.topic("NORMAL")
    consumer, producer = user.simple(topic, user.group()), user.producer(topic)
    invisible_ms = user.shortest_ms
    done = first(user, consumer, producer, topic, "done", invisible_ms)
    user.client("ack", name=consumer, id=done["id"])
    begun = time.time() * 1000
    first(user, consumer, producer, topic, "left", invisible_ms)
    back = again(user, consumer, "left")
    assert back["at"] - begun > invisible_ms - 1, back


def change(user: User) -> None:
    """A simple consumer can change that time."""
    topic = user.topic("NORMAL")
    consumer, producer = user.simple(topic, user.group()), user.producer(topic)
    held = first(user, consumer, producer, topic, "changed", 600_000)
    user.client("invisible", name=consumer, id=held["id"], ms=user.shortest_ms)
    again(user, consumer, "changed")


def first(
    user: User, consumer: str, producer: str, topic: str, body: str, ms: int
) -> Any:
    """Send and receive one: of several a slow machine might have some back at once."""
    user.send(producer, topic, body)
    got = user.receive(consumer, 1, invisibleMs=ms)
    same(list(got), [body])
    same(got[body]["times"], 1)
    return got[body]


def again(user: User, consumer: str, body: str) -> Any:
    """Receive that one again, and acknowledge it."""
    back = user.receive(consumer, 1)
    same(list(back), [body])
    same(back[body]["times"], 2)
    user.client("ack", name=consumer, id=back[body]["id"])
    return back[body]


#: All, by what users call them.
SCENARIOS: Final[dict[str, Callable[[User], None]]] = {
    "normal messages": normal,
    "FIFO messages": ordered,
    "delayed messages": delay,
    "recall": recall,
    "commit and rollback": transactions,
    "check-back": check_back,
    "simple consumer": unacknowledged,
    "invisible time": change,
    "filters": filters,
    "shared group": sharing,
    "push consumer": push,
    "FIFO push consumer": ordered_push,
    "failure in order": ordered_failure,
    "retries": retry,
    "dead letters": dead_letters,
    "dead letters in order": ordered_dead_letters,
    "refusals": refusals,
}
