#!/usr/bin/env python3
"""Random sets of options for reads: each is refused with a sentence, or is a plan.

    python3 scripts/torture/export_options.py [--sets 10000] [--runs 100] [--seed 1]

Sets are parsed without Spark: those that make sense must be taken, the others refused
with one line. Others are carried out at a broker and at its files while it runs: what
is read must be what a model says, message by message, or a refusal where the model says
so. Prints counts, and what was wrong; exit status 1 if anything was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message as Sent
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.sources.open_source import open_origin
from rocketbroker.sources.options import parse_options
from rocketbroker.sources.ranges import Queue
from rocketbroker.wire import fastjson
from rocketbroker.wire.codes import RequestCode
from scripts.lab.servers import Cluster
from scripts.torture.option_sets import (
    Maker,
    Message,
    OptionSet,
    Refused,
    World,
    expected,
    read,
)

TOPICS = {"orders": 3, "orders-eu": 2, "payments": 1, "quiet": 1}
BROKER = "broker-a"
COUNT = 120
GROUP = "readers"


def fill(client: Client) -> World:
    """Send messages, and look at what is stored."""
    producer = Producer(client)
    for topic, queues in TOPICS.items():
        client.create_topic(topic, queues=queues)
        if topic == "quiet":
            continue
        for number in range(COUNT):
            producer.send(Sent(topic, b"%d" % number, "abc"[number % 3]))
    for address in client.masters().values():
        group = fastjson.dumps({"groupName": GROUP})
        client.ask_server(
            address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group
        )
    found: dict[Queue, list[Message]] = {}
    groups: dict[tuple[str, Queue], int] = {}
    for topic in TOPICS:
        for number, queue in enumerate(client.queues(topic)):
            end = client.max_offset(queue)
            chunks = Puller(client).read(queue, 0, end)
            found[Queue(*queue)] = [
                Message(each.queue_offset, each.store_ms, each.tags or "")
                for chunk in chunks
                for each in messages(chunk.data)
            ]
            if number % 2 == 0 and end:
                client.commit_offset(queue, GROUP, end // 2)
                groups[GROUP, Queue(*queue)] = end // 2
    # Offsets of groups, and the last messages, reach others a moment later.
    time.sleep(1)
    return World(found, groups, int(time.time() * 1000))


def parse(chosen: OptionSet) -> str:
    """What came of parsing: a kind, or what was wrong."""
    try:
        parse_options(chosen.given)
    except ConfigurationError as error:
        if chosen.sound or len(str(error).splitlines()) != 1:
            return f"wrong: {chosen.given} is refused: {error}"
        return "refused with a sentence"
    except Exception as error:
        return f"wrong: {chosen.given} fails: {error!r}"
    return "a plan" if chosen.sound else f"wrong: {chosen.given} is taken"


def run(world: World, chosen: OptionSet) -> str:
    """What came of a read: a kind, or what was wrong."""
    options = parse_options(chosen.given)
    where = "offline" if options.store else "live"
    try:
        rows = expected(world, chosen)
    except Refused:
        rows = None
    origin = open_origin(options)
    try:
        found, columns = read(origin, options, world.now_ms)
    except RocketbrokerError as error:
        if rows is None and len(str(error).splitlines()) == 1:
            return f"{where}: refused with a sentence"
        return f"wrong: {chosen.given} fails: {error!r}"
    except Exception as error:
        return f"wrong: {chosen.given} fails: {error!r}"
    finally:
        origin.close()
    if found != rows or columns != [*chosen.columns]:
        return f"wrong: {chosen.given} gave {len(found)} rows"
    return f"{where}: rows as the model says" if rows else f"{where}: nothing, rightly"


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    cluster = Cluster()
    try:
        cluster.start()
        with Client(Settings(cluster.names)) as client:
            world = fill(client)
        # A store's files know nothing of queues that never had a message.
        queues = {queue: found for queue, found in world.queues.items() if found}
        offline = World(queues, {}, world.now_ms)
        store = {"store": str(cluster.store), "brokerName": BROKER}
        makers = [
            Maker(world, [{"nameServer": cluster.names}], words.seed),
            Maker(offline, [store], words.seed),
        ]
        parsed: Counter[str] = Counter()
        ran: Counter[str] = Counter()
        for maker, extra in zip(makers, (1, 0), strict=True):
            parsed.update(map(parse, maker.sets((words.sets + extra) // 2)))
            for chosen in maker.sound_sets((words.runs + extra) // 2):
                ran[run(maker.world, chosen)] += 1
    finally:
        cluster.stop()
    print(f"seed {words.seed}")
    wrong = 0
    for title, counts in (("parsed", parsed), ("run", ran)):
        print(f"{title}: {sum(counts.values())}")
        for kind, count in sorted(counts.items()):
            print(f"  {count:6} {kind}")
            wrong += count if kind.startswith("wrong") else 0
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
