# -*- test-case-name: tests.wire.test_ha_secret -*-
"""The proof of a shared secret, before replication begins and in requests 905 to 908.

Ours: RocketMQ has nothing like it. Neither side says the secret; each proves to the
other that it has it, for numbers that both have just made::

    slave to master                     master to slave
    0  the sign, 8 bytes                0  the sign, 8 bytes
    8  its number, 32 bytes             8  its number, 32 bytes
                                        40 HMAC-SHA256 of "master" and both numbers
    0  HMAC-SHA256 of "slave" and both  0  the sign, 8 bytes: it is believed

Then the stream begins (L{rocketbroker.wire.hastream}). Each eight bytes that the slave
sends first are a negative number: a master without the secret, RocketMQ's too, takes
them for reports of negative positions, which confirm nothing and begin nothing.

A request is proved by two more fields: L{TIME}, and L{PROOF} over the code, that time,
and all other fields.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final, final

from rocketbroker.errors import RemoteProtocolError

#: How the first bytes of both sides begin.
SIGN: Final = b"\xffRBHA\0\0\1"

#: The number of either side.
NUMBER_BYTES: Final = 32

#: A proof, of SHA-256.
PROOF_BYTES: Final = 32

#: The fields of a request that prove it: the time of day in ms, and the proof in
#: hexadecimal digits.
TIME: Final = "haTime"
PROOF: Final = "haProof"

#: How far the clocks of two brokers may be apart, in ms: a request that was overheard
#: is worth nothing later.
MAX_APART_MS: Final = 300_000


class NotProvedError(RemoteProtocolError):
    """The other side does not prove that it has the secret."""


def _hmac(secret: bytes, *parts: bytes) -> bytes:
    made = hmac.new(secret, digestmod="sha256")
    for part in parts:
        made.update(len(part).to_bytes(4) + part)
    return made.digest()


def negative(number: bytes) -> bytes:
    """The same number, each eight bytes of it negative."""
    pieces = (number[at : at + 8] for at in range(0, len(number), 8))
    return b"".join(bytes([piece[0] | 0x80]) + piece[1:] for piece in pieces)


@final
class SlaveHandshake:
    """The slave's side.

    @ivar is_open: whether both have proved it.
    """

    def __init__(self, secret: bytes, number: bytes) -> None:
        """
        @param number: 32 bytes that nobody can guess.
        """
        self.is_open = False
        self.first = SIGN + negative(number)
        self._secret = secret
        self._came = b""
        self._has_answered = False

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the master; what is to be sent to it.

        @raise NotProvedError: it does not have the secret.
        """
        self._came += data
        came, wanted = self._came, len(SIGN)
        if came[:wanted] != SIGN[: len(came)]:
            raise NotProvedError("the master knows of no secret (haSecretFile)")
        if self._has_answered:
            self.is_open = len(came) >= wanted
            return b""
        wanted += NUMBER_BYTES + PROOF_BYTES
        if len(came) < wanted:
            return b""
        numbers = self.first[len(SIGN) :], came[len(SIGN) : -PROOF_BYTES]
        proof = _hmac(self._secret, b"master", *numbers)
        if not hmac.compare_digest(proof, came[-PROOF_BYTES:]):
            raise NotProvedError("the master has another secret (haSecretFile)")
        self._came, self._has_answered = b"", True
        return _hmac(self._secret, b"slave", *numbers)


@final
class MasterHandshake:
    """The master's side.

    @ivar is_open: whether both have proved it.
    @ivar rest: what has come behind the proof.
    """

    def __init__(self, secret: bytes, number: bytes) -> None:
        """
        @param number: 32 bytes that nobody can guess.
        """
        self.is_open = False
        self.rest = b""
        self._secret = secret
        self._number = number
        self._numbers: tuple[bytes, bytes] | None = None

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the slave; what is to be sent to it.

        @raise NotProvedError: it does not have the secret.
        """
        self.rest += data
        if self._numbers is None:
            return self._challenge()
        if len(self.rest) < PROOF_BYTES:
            return b""
        proof = _hmac(self._secret, b"slave", *self._numbers)
        if not hmac.compare_digest(proof, self.rest[:PROOF_BYTES]):
            raise NotProvedError("it has another secret (haSecretFile)")
        self.rest = self.rest[PROOF_BYTES:]
        self.is_open = True
        return SIGN

    def _challenge(self) -> bytes:
        came, wanted = self.rest, len(SIGN) + NUMBER_BYTES
        if came[: len(SIGN)] != SIGN[: len(came)]:
            raise NotProvedError("it proves no secret (haSecretFile)")
        if len(came) < wanted:
            return b""
        if len(came) > wanted:
            raise NotProvedError("it does not wait for the answer")
        self.rest = b""
        self._numbers = came[len(SIGN) :], self._number
        proof = _hmac(self._secret, b"master", *self._numbers)
        return SIGN + self._number + proof


def _encoded(text: str) -> bytes:
    # JSON can say halves of characters.
    return text.encode("utf-8", "surrogatepass")


def _request_proof(secret: bytes, code: int, fields: Mapping[str, str]) -> str:
    parts = [b"request", b"%d" % code]
    for key in sorted(fields.keys() - {PROOF}):
        parts += _encoded(key), _encoded(fields[key])
    return _hmac(secret, *parts).hex()


def proved(
    secret: bytes, code: int, fields: Mapping[str, str], now_ms: int
) -> dict[str, str]:
    """The fields of a request, with those that prove it."""
    found = {**fields, TIME: str(now_ms)}
    return {**found, PROOF: _request_proof(secret, code, found)}


def why_not_proved(
    secret: bytes, code: int, fields: Mapping[str, str], now_ms: int
) -> str:
    """Why a request is not proved; empty: it is."""
    given, time = fields.get(PROOF), fields.get(TIME)
    if given is None or time is None:
        return "it does not prove the secret (haSecretFile)"
    proof = _request_proof(secret, code, fields)
    if not hmac.compare_digest(proof.encode(), _encoded(given)):
        return "it has another secret (haSecretFile)"
    if abs(int(time) - now_ms) > MAX_APART_MS:
        return "its clock and this one are more than five minutes apart"
    return ""
