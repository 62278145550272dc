#!/usr/bin/env python3
"""CPU of a broker for each message, with TLS and access control on and off.

    python3 scripts/bench/security_cost.py [--java] [--messages N] [--rounds N]
                                           [--compiled]

Brokers of ours, one for each row of the table, and with C{--java} brokers of RocketMQ
5.3.3 with the same settings, are up at the same time and loaded in rounds, one after
the other, as the speed of a machine changes from hour to hour; of each, the median
counts, but for Java's first rounds. A message has 128 bytes. C{8x32}: 8 connections
with 32 requests outstanding each; C{64x1}: 64 connections that wait for each answer.
The certificate is one that the broker makes itself (ECDSA, P-256); Java's has RSA keys.

The figures are told; there is no bar.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import selectors
import socket
import ssl
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.lab.javabroker import JavaBroker
from scripts.lab.peers import cpu
from scripts.lab.servers import Cluster, free_base

VERSION: Final = "5.3.3"

#: Connections, and requests outstanding on each.
LOADS: Final = {"8x32": (8, 32), "64x1": (64, 1)}

#: So many rounds of Java do not count: its code is compiled meanwhile.
WARM_ROUNDS: Final = 3

TOPIC: Final = "Secured"
BODY: Final = bytes(128)

#: As the Java client has them.
PROPERTIES: Final = (
    "UNIQ_KEY\x017F000001A2B418B4AAC200000001\x02WAIT\x01true\x02TAGS\x01t"
)
WHO: Final = Credentials("root", "root-secret")

#: Settings of access control, of both.
ACCESS: Final[Mapping[str, object]] = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": json.dumps(
        {"username": WHO.access_key, "password": WHO.secret_key}
    ),
}

#: What RocketMQ needs besides.
PROVIDERS: Final[Mapping[str, object]] = {
    f"{kind}{what}Provider": f"org.apache.rocketmq.auth.{kind}.provider.{name}"
    for kind, what, name in (
        ("authentication", "", "DefaultAuthenticationProvider"),
        ("authentication", "Metadata", "LocalAuthenticationMetadataProvider"),
        ("authorization", "", "DefaultAuthorizationProvider"),
        ("authorization", "Metadata", "LocalAuthorizationMetadataProvider"),
    )
}


class Row(NamedTuple):
    """A broker, and how it is spoken to."""

    name: str
    is_java: bool
    has_tls: bool
    has_access: bool


def rows(with_java: bool) -> list[Row]:
    """All of them."""
    return [
        Row(f"{whose}, TLS {on(tls)}, ACL {on(access)}", is_java, tls, access)
        for is_java, whose in ((False, "ours"), (True, "Java"))
        if with_java or not is_java
        for tls in (False, True)
        for access in (False, True)
    ]


def on(is_on: bool) -> str:
    """In words."""
    return "on" if is_on else "off"


@contextlib.contextmanager
def up(row: Row) -> Iterator[tuple[int, int]]:
    """A broker: its port and its process."""
    settings = dict(ACCESS) if row.has_access else {}
    with tempfile.TemporaryDirectory() as folder:
        if not row.is_java:
            cluster = Cluster(Path(folder) / "ours", workers="0", **settings)
            cluster.start()
            try:
                port = int(cluster.address.rpartition(":")[2])
                process = cluster.broker.process
                assert process is not None
                yield port, process.pid
            finally:
                cluster.stop()
            return
        port = free_base() + 10
        broker = JavaBroker(
            VERSION,
            Path(folder) / "java",
            {
                "listenPort": port,
                "brokerIP1": "127.0.0.1",
                "storePathRootDir": f"{folder}/store",
                "autoCreateTopicEnable": "true",
                "mappedFileSizeCommitLog": 1 << 26,
                **settings,
                **(PROVIDERS if row.has_access else {}),
            },
        )
        broker.start()
        try:
            yield port, broker.pid
        finally:
            broker.stop()


def request(row: Row, number: int) -> bytes:
    """A send, signed where that is wanted."""
    ext = {
        "a": "P",
        "b": TOPIC,
        "c": "TBW102",
        "d": "4",
        "e": str(number % 4),
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": PROPERTIES,
        "j": "0",
        "k": "false",
        "m": "false",
    }
    if row.has_access:
        ext = sign(ext, BODY, WHO)
    command = Command(RequestCode.SEND_MESSAGE_V2, ext, BODY, opaque=number)
    return encode(command)


class Client:
    """One connection that sends again when it is answered."""

    def __init__(self, row: Row, port: int, number: int, outstanding: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        if row.has_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self._frame = request(row, number)
        self._rest = b""
        self.left = 0
        self._outstanding = outstanding

    def begin(self, count: int) -> None:
        """Send the first requests of so many."""
        first = min(count, self._outstanding)
        self.left = count
        self._unsent = count - first
        self.socket.sendall(self._frame * first)

    def step(self) -> None:
        """Take answers, and send as many requests.

        @raise RuntimeError: one was refused.
        """
        data = self._rest + self.socket.recv(1 << 18)
        while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            data += self.socket.recv(1 << 18)
        if not data:
            raise RuntimeError("the broker closed the connection")
        at = answered = 0
        while len(data) - at >= 4:
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                break
            if b'"code":0,' not in data[at:end]:
                raise RuntimeError(f"refused: {data[at:end]!r}")
            answered += 1
            at = end
        self._rest = data[at:]
        self.left -= answered
        more = min(answered, self._unsent)
        if more:
            self._unsent -= more
            self.socket.sendall(self._frame * more)


def load(row: Row, port: int, shape: tuple[int, int], messages: int) -> None:
    """Send so many messages."""
    connections, outstanding = shape
    clients = [Client(row, port, each, outstanding) for each in range(connections)]
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.begin(messages // connections)
        busy = len(clients)
        while busy:
            for key, _ in selector.select(60):
                client = key.data
                client.step()
                if not client.left:
                    selector.unregister(client.socket)
                    busy -= 1
    for client in clients:
        client.socket.close()


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--java", action="store_true")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    words, _ = parser.parse_known_args()
    found: dict[tuple[str, str], list[float]] = {}
    with contextlib.ExitStack() as stack:
        brokers = {row: stack.enter_context(up(row)) for row in rows(words.java)}
        for number in range(-WARM_ROUNDS if words.java else -1, words.rounds):
            for row, (port, pid) in brokers.items():
                for name, shape in LOADS.items():
                    before = cpu(pid)
                    load(row, port, shape, words.messages)
                    took = (cpu(pid) - before) / words.messages * 1e6
                    if number >= 0:
                        found.setdefault((row.name, name), []).append(took)
    print(f"{'us of CPU a message':32}" + "".join(f"{each:>10}" for each in LOADS))
    for row in rows(words.java):
        figures = [statistics.median(found[row.name, name]) for name in LOADS]
        print(f"{row.name:32}" + "".join(f"{each:10.1f}" for each in figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
