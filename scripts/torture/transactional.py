"""A producer of transactions on a plain socket."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable

from rocketbroker.records import record
from rocketbroker.records.properties import CHECK_IMMUNITY_SECONDS
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, RESPONSE, Command
from rocketbroker.wire.frames import decode, encode
from rocketbroker.wire.headers.send import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
)

#: A producer says so often that it is there.
HEARTBEAT_SECONDS = 1.0

#: How long an answer may take; a broker of Java's that is new on a busy machine needs
#: seconds for its first one. Nothing is asserted about it.
ANSWER_SECONDS = 60.0


class TransactionalProducer:
    """One member of a producer group. It answers questions while it waits for anything.

    @ivar asked: how many questions came.
    """

    def __init__(
        self, address: str, group: str, decide: Callable[[str], int | None]
    ) -> None:
        """
        @param address: the broker's host and port.
        @param decide: given a unique key that the broker asks about, the outcome; None
            not to answer.
        """
        self.asked = 0
        self._address = address
        self._group = group
        self._decide = decide
        self._socket: socket.socket | None = None
        self._received = b""
        self._opaque = 0
        self._beat = 0.0

    def connect(self) -> None:
        """Connect anew.

        @raise OSError: nobody listens.
        """
        self.close()
        host, _, port = self._address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), ANSWER_SECONDS)
        # An end waits for no answer; the next half must not wait for its segment.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._beat = 0.0
        self._heartbeat()

    def close(self) -> None:
        """End the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def half(
        self,
        topic: str,
        queue_id: int,
        key: str,
        body: bytes,
        immune_seconds: int | None = None,
    ) -> Command:
        """Send a half message; its answer.

        @param immune_seconds: how long nobody is to ask about it.
        @raise OSError: the connection is lost.
        """
        properties = {
            "UNIQ_KEY": key,
            "KEYS": key,
            "TRAN_MSG": "true",
            "PGROUP": self._group,
            "WAIT": "true",
        }
        if immune_seconds is not None:
            properties[CHECK_IMMUNITY_SECONDS] = str(immune_seconds)
        ext = {
            "a": self._group,
            "b": topic,
            "c": "TBW102",
            "d": "4",
            "e": str(queue_id),
            "f": "4",
            "g": str(time.time_ns() // 1_000_000),
            "h": "7",
            "i": "".join(f"{k}\x01{v}\x02" for k, v in properties.items()),
            "j": "0",
            "k": "false",
            "m": "false",
        }
        return self._ask(Command(RequestCode.SEND_MESSAGE_V2, ext, body))

    def end(self, topic: str, half: Command, outcome: int) -> None:
        """Say what became of a transaction, as the official client does.

        @param half: the answer to its half message.
        @raise OSError: the connection is lost.
        """
        assert half.ext is not None
        header = EndTransactionRequestHeader(
            topic=topic,
            producer_group=self._group,
            tran_state_table_offset=int(half.ext["queueOffset"]),
            commit_log_offset=int(half.ext["msgId"][16:], 16),
            commit_or_rollback=outcome,
            from_transaction_check=False,
            msg_id=half.ext["msgId"],
            transaction_id=half.ext.get("transactionId"),
        )
        self._oneway(RequestCode.END_TRANSACTION, header.to_ext())

    def serve(self, seconds: float) -> None:
        """Answer questions for some time.

        @raise OSError: the connection is lost.
        """
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._heartbeat()
            self._take(left)

    def _heartbeat(self) -> None:
        now = time.monotonic()
        if now - self._beat < HEARTBEAT_SECONDS:
            return
        self._beat = now
        beat = {
            "clientID": f"{self._group}@{id(self)}",
            "producerDataSet": [{"groupName": self._group}],
            "consumerDataSet": [],
        }
        body = json.dumps(beat).encode()
        self._ask(Command(RequestCode.HEART_BEAT, {}, body))

    def _oneway(self, code: int, ext: dict[str, str], body: bytes = b"") -> None:
        self._opaque += 1
        command = Command(code, ext, body, opaque=self._opaque, flag=ONEWAY)
        self._write(command)

    def _write(self, command: Command) -> None:
        if self._socket is None:
            raise ConnectionError("not connected")
        self._socket.sendall(encode(command))

    def _ask(self, command: Command) -> Command:
        self._opaque += 1
        command.opaque = self._opaque
        self._write(command)
        end = time.monotonic() + ANSWER_SECONDS
        while (left := end - time.monotonic()) > 0:
            answer = self._take(left)
            if answer is not None and answer.opaque == command.opaque:
                return answer
        raise TimeoutError("no answer")

    def _take(self, seconds: float) -> Command | None:
        """The next answer, if one comes in time; a question is dealt with."""
        command = self._next(seconds)
        if command is None or command.flag & RESPONSE:
            return command
        if command.code == RequestCode.CHECK_TRANSACTION_STATE:
            self._reply(command)
        return None

    def _next(self, seconds: float) -> Command | None:
        if self._socket is None:
            raise ConnectionError("not connected")
        while True:
            size = int.from_bytes(self._received[:4], "big")
            if len(self._received) >= 4 + size and len(self._received) >= 4:
                payload = self._received[4 : 4 + size]
                self._received = self._received[4 + size :]
                return decode(payload)
            self._socket.settimeout(max(0.001, seconds))
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                return None
            finally:
                self._socket.settimeout(ANSWER_SECONDS)
            if not data:
                raise ConnectionError("the broker has gone")
            self._received += data

    def _reply(self, question: Command) -> None:
        self.asked += 1
        header = CheckTransactionStateRequestHeader.from_ext(question.ext)
        message = record.decode(question.body)
        key = message.unique_key
        outcome = None if key is None else self._decide(key)
        if outcome is None:
            return
        reply = EndTransactionRequestHeader(
            topic=header.topic,
            producer_group=self._group,
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=outcome,
            from_transaction_check=True,
            msg_id=key or "",
            transaction_id=header.transaction_id,
        )
        self._oneway(RequestCode.END_TRANSACTION, reply.to_ext())
