"""The Java broker and ours, asked the same questions, request by request.

A I{conversation} is a function that asks one side. It is run with each, and what was
answered is compared: code, fields, and what the body says, without what differs from
broker to broker and from moment to moment (L{plain}). Of remarks the first words are,
where the code is one that says more than that something failed.
"""

from __future__ import annotations

import re
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.wire.command import JSON, ONEWAY, Command, response_to
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.fastjson import dumps, loads
from rocketbroker.wire.frames import encode
from scripts.lab.javabroker import JavaBroker, JavaNameServer
from scripts.lab.servers import Cluster, Server

Ext = dict[str, Any]

#: How long an answer may take.
SECONDS: Final = 60.0

#: How long one is waited for that must not come.
SILENCE_SECONDS: Final = 0.5

#: Fields and members whose values are of one broker, or of one moment.
OF_THE_MOMENT: Final = frozenset(
    "msgId dataVersion version timestamp lastUpdateTimestamp subVersion lastTimestamp "
    "clientAddr brokerAddr remoteIP consumeTps topicPutTps bornHost storeHost "
    "storeTimestamp physicOffset tps "
    "PUSH_REPLY_TIME bornTimestamp indexLastUpdateTimestamp "
    "indexLastUpdatePhyoffset".split()
)

#: Ids that a broker has made of its own address.
MADE: Final = re.compile("[0-9A-F]{30}|[0-9A-F]{32}|[0-9A-F]{56}")

#: Codes whose remarks are compared, and how much of them.
SAYING: Final = frozenset((16, 17, 19, 20, 21, 22, 24, 25, 26, 29, 206))
FIRST_CHARACTERS: Final = 20

#: What the Java broker adds to its refusals of sends; nobody looks at it.
ADDED: Final = frozenset(("MSG_REGION", "TRACE_ON"))

#: The codes of the requests whose answers are compared, for C{docs/compatibility.rst}.
COMPARED: Final = Path(__file__).with_name("compared_codes.json")

#: What stands for an answer that did not come.
SILENCE: Final = "no answer"


class Line:
    """One connection.

    @ivar asked: what the broker has asked.
    """

    def __init__(self, address: str, serialization: int = JSON) -> None:
        host, _, port = address.partition(":")
        self._socket = socket.create_connection((host, int(port)), SECONDS)
        self._serialization = serialization
        self._incoming = Connection()
        self._ready: list[Command] = []
        self._opaque = 0
        self.asked: list[Command] = []

    def send(self, command: Command) -> None:
        """Send a request, or a response."""
        if not command.is_response:
            self._opaque += 1
            command.opaque = self._opaque
        self._socket.sendall(encode(command, self._serialization))

    def invoke(self, command: Command) -> Command:
        """Send a request; its answer.

        @raise TimeoutError: there is none.
        """
        self.send(command)
        while not (answer := self.receive(SECONDS)).is_response:
            self.asked.append(answer)
        assert answer.opaque == command.opaque, answer
        return answer

    def request(self, code: int) -> Command:
        """What the broker asks next with that code."""
        while True:
            found = [each for each in self.asked if each.code == code]
            if found:
                self.asked.remove(found[0])
                return found[0]
            self.asked.append(self.receive(SECONDS))

    def receive(self, seconds: float) -> Command:
        """What comes next.

        @raise TimeoutError: nothing.
        """
        self._socket.settimeout(seconds)
        while not self._ready:
            data = self._socket.recv(1 << 16)
            assert data, "the broker has closed the connection"
            self._ready += self._incoming.receive(data)
        return self._ready.pop(0)

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class Side:
    """One of the two brokers, and what it has answered.

    @ivar address: its host and port.
    @ivar answers: by the name of the question.
    @ivar codes: of the requests whose answers are compared.
    """

    def __init__(self, address: str, names: str) -> None:
        self.address = address
        self.codes: set[int] = set()
        self._names = names
        self._lines: list[Line] = []
        self.answers: dict[str, object] = {}
        self._line = self.connect()

    def connect(self, serialization: int = JSON) -> Line:
        """One more connection."""
        line = Line(self.address, serialization)
        self._lines.append(line)
        return line

    def quietly(
        self,
        code: int,
        ext: Ext | None = None,
        body: object = b"",
        on: Line | None = None,
        **words: Any,
    ) -> Command:
        """Ask what is not compared."""
        return (on or self._line).invoke(command_of(code, ext, body, **words))

    def ask(
        self,
        name: str,
        code: int,
        ext: Ext | None = None,
        body: object = b"",
        **words: Any,
    ) -> Command:
        """Ask what is compared."""
        answer = self.quietly(code, ext, body, **words)
        self.codes.add(code)
        self.note(name, answer)
        return answer

    def begin(self, code: int, ext: Ext) -> Line:
        """Ask over a connection of its own; the answer comes there."""
        line = self.connect()
        line.send(command_of(code, ext, b""))
        return line

    def note(self, name: str, answered: Command) -> None:
        """Compare that, too: what the broker has asked, say."""
        assert name not in self.answers, name
        remark = None
        if answered.code in SAYING:
            remark = (answered.remark or "")[:FIRST_CHARACTERS].rstrip()
        ext = dict(answered.ext or {})
        if answered.is_response and answered.code:
            ext = {key: text for key, text in ext.items() if key not in ADDED}
        self.answers[name] = (answered.code, plain(ext), body_of(answered), remark)

    def oneways(self, name: str, codes: Sequence[int], ext: Ext, body: bytes) -> None:
        """Ask without wanting an answer; there is none."""
        line = self.connect()
        for code in codes:
            line.send(command_of(code, ext, body, flag=ONEWAY))
        try:
            self.note(name, line.receive(SILENCE_SECONDS))
        except TimeoutError:
            self.answers[name] = SILENCE

    def until(
        self,
        good: Callable[[Command], bool],
        code: int,
        on: Line | None = None,
        **ext: object,
    ) -> None:
        """Ask again and again until the answer is good."""
        end = time.monotonic() + SECONDS
        while not good(answer := self.quietly(code, ext, on=on)):
            assert time.monotonic() < end, (code, ext, answer)
            time.sleep(0.01)

    def routed(self, topic: str) -> None:
        """Wait until the broker's name server knows a topic."""
        line = Line(self._names)
        self._lines.append(line)
        self.until(lambda answer: answer.code == 0, 105, line, topic=topic)

    def close(self) -> None:
        """Close all connections."""
        for line in self._lines:
            line.close()


def command_of(code: int, ext: Ext | None, body: object, **words: Any) -> Command:
    """A request; a body that is not of bytes is JSON."""
    texts = None if ext is None else {key: text_of(ext[key]) for key in ext}
    return Command(code, texts, body if type(body) is bytes else dumps(body), **words)


def text_of(value: object) -> str:
    """A field's value as Java writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def answer_to(request: Command, body: object, code: int = 0) -> Command:
    """What a client answers to a broker."""
    return response_to(request, code, body=dumps(body))


def body_of(answered: Command) -> object:
    """What a body says: messages, JSON, or how long it is."""
    if not answered.body:
        return None
    try:
        return plain(loads(answered.body))
    except RemoteProtocolError:
        pass
    try:
        return [message_of(each) for each in decode_all(answered.body)]
    except Malformed:
        return "bytes"


def message_of(message: StoredMessage) -> dict[str, object]:
    """A stored message without its times, hosts and place in the log."""
    return {
        "topic": message.topic,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "flag": message.flag,
        "sys": message.sys_flag,
        "times": message.reconsume_times,
        "prepared": message.prepared_offset,
        "body": message.body,
        "properties": plain(message.properties),
    }


def plain(value: object, name: str = "") -> object:
    """A value of JSON without what is of the moment; lists have no order."""
    if name in OF_THE_MOMENT and value is not None:
        return "..."
    if name == "properties" and isinstance(value, str):
        entries = (entry.partition("\x01") for entry in value.split("\x02") if entry)
        return plain({key: text for key, _, text in entries})
    if isinstance(value, str) and MADE.fullmatch(value):
        return "made by the broker"
    if isinstance(value, dict):
        return {str(key): plain(each, str(key)) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((plain(each) for each in value), key=repr)
    return value


class Pair:
    """Both brokers, each with a name server of its own.

    @ivar addresses: of broker and name server, Java's first.
    @ivar codes: of the requests whose answers were compared.
    """

    def __init__(
        self, version: str, java_names: bool = False, **settings: object
    ) -> None:
        """
        @param java_names: the Java broker's name server is Java's, too.
        @param settings: of both brokers.
        """
        self.codes: set[int] = set()
        self.cluster = Cluster(**settings)
        # Ports of the same row, between those of the cluster.
        base = self.cluster.namesrv.port
        names, port = base + 2, base + 15
        folder = Path(tempfile.mkdtemp(dir=self.cluster.folder)) / "java"
        self._java = JavaBroker(
            version,
            folder,
            {
                "brokerClusterName": "DefaultCluster",
                "brokerName": "broker-a",
                "brokerIP1": "127.0.0.1",
                "namesrvAddr": f"127.0.0.1:{names}",
                "listenPort": port,
                "haListenPort": port + 1,
                "storePathRootDir": folder / "store",
                "storePathCommitLog": folder / "store" / "commitlog",
                "autoCreateTopicEnable": "true",
                "enablePropertyFilter": "true",
                **settings,
            },
        )
        self._names: Server | JavaNameServer
        own = {"listenPort": names, "kvConfigPath": folder / "kv.json"}
        if java_names:
            self._names = JavaNameServer(version, folder / "names", own)
        else:
            own["metricsPromExporterPort"] = 0
            self._names = Server("namesrv", own, folder, names)
        self.addresses = (
            (f"127.0.0.1:{port}", f"127.0.0.1:{names}"),
            (self.cluster.address, self.cluster.names),
        )

    @property
    def homes(self) -> tuple[Path, Path]:
        """Where each broker has its folder C{conf}, Java's first."""
        return self._java.home, self.cluster.folder

    def start(self) -> None:
        """Start all."""
        self._names.start()
        self._java.start()
        self.cluster.start()

    def answers(
        self, conversation: Callable[[Side], None]
    ) -> tuple[dict[str, object], dict[str, object]]:
        """What both have answered, the Java broker first."""
        found = []
        for address, names in self.addresses:
            side = Side(address, names)
            try:
                conversation(side)
            finally:
                side.close()
            found.append(side.answers)
            self.codes |= side.codes
        return found[0], found[1]

    def stop(self) -> None:
        """Stop all and remove everything."""
        self._java.stop(signal.SIGKILL)
        self._names.stop()
        self.cluster.stop()
