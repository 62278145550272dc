"""RocketMQ's command line at the Java broker and at ours: what it prints, side by side.

A command is run at one and at the other, by the same tool, in a process that stays
(tests/integration/java, Tool). What it prints is compared without what is of the moment
or of the place: times, addresses, ids, rates. Files that it writes are part of it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rocketbroker.wire.codes import RequestCode
from scripts.lab.javaclient import PATIENCE, JavaClient, JavaError
from tests.integration.questions import (
    make_topic,
    of,
    properties,
    send,
    visible,
)
from tests.integration.sidebyside import Pair, Side, plain

#: How long a command may take; nothing is asserted about it.
MILLISECONDS: Final = 120_000

#: Commands that never end, and after how many lines they are interrupted.
ENDLESS: Final = {"clusterRT": 2}

#: Where the tool writes bodies of messages, whatever it is told.
BODIES: Final = Path("/tmp/rocketmq/msgbodys")

#: What is of the moment or of the place, and what is compared instead, in this order.
PLAIN: Final = [
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"(?m)^\s+(?:at |\.\.\. \d).*(?:\n|$)", ""),
        (r"(?m)^For more information.*(?:\n|$)", ""),
        # A producer of a command that was interrupted.
        (r"(?m)^producer group \(1[5-9]\d{11}\).*(?:\n|$)", ""),
        (r"(request type \d+) \([A-Z_]+\)", r"\1"),
        (r"(?<=commitLogDiskRatio_)\S+", "{store}"),
        (r"(?m)(?<= true)\s+\d+$", " {ms}"),
        (r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d[.,:]?\d*", "{time}"),
        (r"\d{4}-\d\d-\d\d$", "{day}"),
        (r"\b1[5-9]\d{11}\b", "{ms}"),
        (r"127\.0\.0\.1:\d{5}\b", "{address}"),
        (r"\S*/conf/plain_acl\.yml", "{accounts}"),
        # An object without words of its own, and where Java refused an account.
        (r"(?<=PlainAccessConfig@)[0-9a-f]+", "{id}"),
        (r", org\.apache\.rocketmq\.acl\.\S+\(\w+\.java:\d+\)", ""),
        (r"[\w.:]+@(?:consumer|producer)\d+", "{client}"),
        (r"\b(?:[0-9A-F]{30}|[0-9A-F]{32}|[0-9A-F]{56})\b", "{id}"),
        (r"\brt=\d+ms|\b\d+ ?ms\b", "{ms}"),
        (r"\d+\.\d+(?:E-?\d+)?", "{n}"),
        (r"\(MQClientAPIImpl.java:\d+\)", ""),
        # Timers are a second behind for a moment of each second.
        (r"\b[01]-0(?=\(\{n\}w)", "{n}-0"),
        (r"(?<=spentTimeMills=)\d+", "{ms}"),
        (r'"array": "[^"]*"', "{bytes}"),
        (r'(?<="sum": )\d+|(?<="spentTimeMills": )\d+', "{count}"),
        # What statsAll counts of a day, and what it takes from a table that is made
        # each ten seconds.
        (r"(?m)(\{n\}) +\d+(?: +\d+| +NO_CONSUMER)?$", r"\1 {count}"),
        # The test's own client, and properties in the order of a table without one.
        (r"(?m)^producer group \(CLIENT_INNER_PRODUCER\).*(?:\n|$)", ""),
    )
]

#: Commands whose lines have no order: they come from tables without one.
UNORDERED: Final = frozenset(
    "topicList statsAll getBrokerConfig getNamesrvConfig brokerConsumeStats producer "
    "resetOffsetByTime skipAccumulatedMessage consumerProgress getConsumerConfig "
    "printMsg queryMsgByKey topicStatus checkMsgSendRT".split()
)

#: Commands of which only the names of figures are compared: their values are in
#: tests.integration.test_status.
FIGURES: Final = frozenset(["brokerStatus"])

#: Commands that list settings: compared are those that Java's server has, ...
SETTINGS: Final = frozenset(["getBrokerConfig", "getNamesrvConfig"])

#: ... but those of the place, and those that are else for a reason.
OF_THE_PLACE: Final = frozenset(
    "listenPort haListenPort rocketmqHome storePathRootDir storePathCommitLog "
    "configStorePath kvConfigPath metricsPromExporterPort".split()
)
ELSE: Final = {
    "metricsExporterType": "metrics are served unless they are switched off",
    "bitMapLengthConsumeQueueExt": "Java shows what it makes of its setting",
    "isBrokerContainer": "no setting: Java shows a field of its own",
    "isInBrokerContainer": "no setting: Java shows a field of its own",
    "isScanAvailableNameSrv": "shown by the name that sets it, scanAvailableNameSrv",
}

#: The unique key of the first message; the next ones follow.
FIRST_KEY: Final = 0x7F000001000100000000000000000000


#: The content of the files that commands are given.
TOPICS: Final = [
    {
        "topicName": f"Listed{number}",
        "readQueueNums": number,
        "writeQueueNums": number,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
    }
    for number in (1, 2)
]
GROUPS: Final = [
    {"groupName": "ListedG1", "retryMaxTimes": 3},
    {"groupName": "ListedG2", "consumeEnable": False},
]


#: Begins what stands for an answer that is an error.
FAILED: Final = "failed: "

#: A map as Java prints it.
MAP: Final = re.compile(r"\{([^{}=\n]+=[^{}\n]*)\}")


def sorted_map(found: re.Match[str]) -> str:
    """A map with its keys in order."""
    return "{" + ", ".join(sorted(found[1].split(", "))) + "}"


def setting(line: str) -> str:
    """The key in a line of C{key = value}."""
    return line.partition(" ")[0]


class Seat:
    """One of the two brokers, as a user of the tool sees it.

    @ivar ids: what stands for C{{id}} and so on in the lines of commands.
    """

    def __init__(self, address: str, names: str, folder: Path) -> None:
        self.address = address
        self.names = names
        self.folder = folder
        self.ids = {"broker": address, "names": names, "folder": str(folder)}
        folder.mkdir()
        (folder / "topics.json").write_text(json.dumps(TOPICS))
        (folder / "groups.json").write_text(json.dumps(GROUPS))

    def words(self, line: str) -> list[str]:
        """The words of a command."""
        words = [word.format_map(self.ids) for word in line.split()]
        return [*words, "-n", self.names]

    def written(self) -> Iterator[str]:
        """The lines of the files that a command has written; they are removed."""
        for path in sorted((self.folder / "out").rglob("*")):
            if path.is_file():
                value = plain(json.loads(path.read_text()))
                text = json.dumps(value, indent=1, sort_keys=True, default=str)
                yield f"{path.name}: {text}"
                path.unlink()


class Tool:
    """The tool of one version, and both brokers.

    @ivar version: of the tool.
    @ivar number: the first number of it, which ends names of topics and groups.
    """

    def __init__(
        self, version: str, pair: Pair, login: tuple[str, str] | None = None
    ) -> None:
        """
        @param login: the account that commands are signed with.
        """
        self.version = version
        self.number = version[0]
        folder = pair.cluster.folder / f"tool-{version}"
        folder.mkdir()
        self.seats = [
            Seat(address, names, folder / name)
            for (address, names), name in zip(
                pair.addresses, ("java", "ours"), strict=True
            )
        ]
        for seat in self.seats:
            seat.ids["v"] = self.number
        self.java = JavaClient(version, pair.cluster.names, folder)
        self._accounts = folder / "conf" / "tools.yml"
        words = {}
        if login is not None:
            self.sign(*login)
            words = dict(zip(("key", "secret"), login, strict=True))
        for seat in self.seats:
            self._register(seat, words)

    def sign(self, key: str, secret: str) -> None:
        """Sign the commands that come with an account."""
        self._accounts.write_text(f"accessKey: {key}\nsecretKey: {secret}\n")

    def leave(self) -> None:
        """Sign no more."""
        self._accounts.unlink()

    def _register(self, seat: Seat, words: dict[str, str]) -> None:
        """Wait until a name server knows the broker: 5.3.3 may not find it at the
        start, and would try again after ten seconds."""
        side = Side(seat.address, seat.names)
        try:
            if seat.folder.name == "java":
                self.java("announce", address=seat.address, **words)
            side.routed("DefaultCluster")
        finally:
            side.close()

    def stop(self) -> None:
        """End it, and remove what it has written where it always does."""
        self.java.stop()
        for path in BODIES.glob(f"{FIRST_KEY:032X}"[:30] + "*"):
            path.unlink()

    def shown(self, line: str) -> tuple[str, str]:
        """What a command shows of the Java broker and of ours."""
        java, ours = (self._shown(seat, line) for seat in self.seats)
        if line.split()[0] in SETTINGS:
            known = {setting(each) for each in java.splitlines()}
            known -= OF_THE_PLACE | ELSE.keys()
            java, ours = (
                "\n".join(each for each in text.splitlines() if setting(each) in known)
                for text in (java, ours)
            )
        return java, ours

    def _shown(self, seat: Seat, line: str) -> str:
        name = line.partition(" ")[0]
        limits = {"timeoutMs": MILLISECONDS, "lines": ENDLESS.get(name, 0)}
        answer = self.java("mqadmin", words=seat.words(line), **limits)
        assert answer["ended"], line
        text = "\n".join(
            [answer["printed"], answer["complaints"], *seat.written()]
        ).strip()
        text = text.replace(str(seat.folder), "{folder}")
        text = MAP.sub(sorted_map, text)
        for pattern, instead in PLAIN:
            text = pattern.sub(instead, text)
        # Columns are as wide as what is in them.
        lines = [" ".join(each.split()) for each in text.splitlines() if each.strip()]
        if name in FIGURES:
            lines = [each.partition(":")[0].strip() for each in lines]
        return "\n".join(sorted(lines) if name in UNORDERED else lines)

    def commands(self) -> list[str]:
        """The names of all commands that the tool has."""
        answer = self.java("mqadmin", words=[], timeoutMs=MILLISECONDS)
        lines = answer["printed"].splitlines()
        return [line.split()[0] for line in lines if line.startswith("   ")]

    def call(self, method: str, *words: object) -> tuple[str, str]:
        """What a method of the library that tools use answers, Java's broker first."""
        found = []
        for seat in self.seats:
            texts = [
                word.format_map(seat.ids) if isinstance(word, str) else word
                for word in words
            ]
            try:
                answer = self.java("call", names=seat.names, method=method, words=texts)
            except JavaError as error:
                found.append(f"{FAILED}{error.kind} {error.code}")
                continue
            text = json.dumps(plain(answer), sort_keys=True, default=str)
            for pattern, instead in PLAIN:
                text = pattern.sub(instead, text)
            found.append(text)
        return found[0], found[1]

    def fill(self) -> None:
        """Give both the same messages, a group that is behind, one with a member."""
        for seat in self.seats:
            side = Side(seat.address, seat.names)
            try:
                self._fill(seat, side, self.number)
            finally:
                side.close()

    def _fill(self, seat: Seat, side: Side, suffix: str) -> None:
        topic = f"T{suffix}"
        for number in range(6):
            own = properties(
                UNIQ_KEY=f"{FIRST_KEY + int(suffix) * 16 + number:032X}",
                WAIT="true",
                KEYS=f"k{number}",
                TAGS=f"tag{number % 2}",
            )
            sent = side.quietly(310, send(topic, i=own), b"body%d" % number)
            assert sent.code == 0, sent
            seat.ids["id"] = (sent.ext or {})["msgId"]
        seat.ids["key"] = f"{FIRST_KEY + int(suffix) * 16 + 1:032X}"
        visible(side, topic, 6)
        self._commit(side, f"G{suffix}", topic, 2)
        group, read = f"C{suffix}", f"R{suffix}"
        make_topic(side, read, 1)
        side.routed(read)
        words: dict[str, Any] = {"names": seat.names}
        name = seat.folder.name
        self.java("producer", name=f"P-{name}", group=f"P{suffix}", **words)
        for number in range(3):
            self.java.send(f"P-{name}", read, b"x%d" % number)
        # It gets all of them by its first pull. The next would bring the offset of what
        # it has handled until then: it comes when that is all.
        visible(side, read, 3)
        words["pullIntervalMs"] = 5_000
        self.java("consumer", name=name, group=group, topic=read, **words)
        assert len(self.java.received(name, 3)) == 3
        # The member would do that within ten seconds, or twenty.
        self._commit(side, group, read, 3)
        self._commit(side, group, f"%RETRY%{group}", 0)
        seat.ids["client"] = self._member(side, group)

    def _commit(self, side: Side, group: str, topic: str, offset: int) -> None:
        """Say how far a group is in the first queue of a topic."""
        fields = of(consumerGroup=group, topic=topic, queueId=0, commitOffset=offset)
        answer = side.quietly(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
        assert answer.code == 0, answer

    def _member(self, side: Side, group: str) -> str:
        """The client id of a group's only member."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = side.quietly(38, of(consumerGroup=group))
            if answer.code == 0 and answer.body:
                return str(json.loads(answer.body)["consumerIdList"][0])
        raise AssertionError(group)
