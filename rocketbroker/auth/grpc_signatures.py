# -*- test-case-name: tests.auth.test_grpc_signatures -*-
"""Signatures of gRPC calls: the header C{authorization} of RocketMQ 5.

The signature covers the text of C{x-mq-date-time} and nothing else, and no server
compares that date with a clock (C{docs/facts/proxy.md} 3.1 and 14; RocketMQ's
C{DefaultAuthenticationContextBuilder})::

    MQv2-HMAC-SHA1 Credential=<accessKey>, SignedHeaders=x-mq-date-time, Signature=<hex>
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Final

import attrs

from rocketbroker.auth.java_strings import BLANKS, split
from rocketbroker.auth.signatures import Credentials, is_signature, mac
from rocketbroker.errors import NoPermission

#: Names of the headers.
AUTHORIZATION: Final = "authorization"
DATE_TIME: Final = "x-mq-date-time"
SESSION_TOKEN: Final = "x-mq-session-token"

ALGORITHM: Final = "MQv2-HMAC-SHA1"

_HEX: Final = re.compile("(?:[0-9a-fA-F]{2})*")


@attrs.frozen
class SignedCall:
    """What the headers of a call say about the caller.

    @ivar access_key: the user's name, None if the call is not signed.
    @ivar signature: in Base64, None if there is none.
    @ivar date_time: the text that it covers.
    """

    access_key: str | None = None
    signature: str | None = None
    date_time: str = ""


def sign(credentials: Credentials, date_time: str) -> dict[str, str]:
    """The headers of a signed call.

    @param date_time: the current time as C{20210309T195445Z}.
    """
    code = mac(date_time.encode(), credentials.secret_key).hex().upper()
    headers = {
        DATE_TIME: date_time,
        AUTHORIZATION: f"{ALGORITHM} Credential={credentials.access_key}, "
        f"SignedHeaders={DATE_TIME}, Signature={code}",
    }
    if credentials.security_token is not None:
        headers[SESSION_TOKEN] = credentials.security_token
    return headers


def parse(authorization: str | None, date_time: str | None) -> SignedCall:
    """What a call's headers say, read as RocketMQ's Proxy does.

    The word before the first blank and C{SignedHeaders} are not looked at.

    @raise NoPermission: they cannot be read, in the Proxy's words.
    """
    if not authorization:
        return SignedCall()
    if not date_time:
        raise NoPermission("datetime is null.")
    _, blank, items = authorization.partition(" ")
    if not blank:
        raise NoPermission("authentication header is incorrect.")
    access_key = signature = None
    for item in split(items, ","):
        name, equals, value = item.strip(BLANKS).partition("=")
        if not equals:
            raise NoPermission(
                "authentication keyValues length is incorrect, actual length=1."
            )
        if name == "Credential":
            access_key = _first_part(value)
        elif name == "Signature":
            if not _HEX.fullmatch(value):
                raise NoPermission("create authentication context error.")
            signature = b64encode(bytes.fromhex(value)).decode("ascii")
    return SignedCall(access_key, signature, date_time)


def _first_part(credential: str) -> str:
    """The name in a credential: Go's client writes C{name//Rocketmq}."""
    parts = split(credential, "/")
    if not parts:
        raise NoPermission(
            "authentication credential length is incorrect, actual length=0."
        )
    return parts[0]


def verify(call: SignedCall, secret_key: str) -> bool:
    """Whether a call has the right signature."""
    return call.signature is not None and is_signature(
        call.signature, call.date_time.encode("utf-8", "replace"), secret_key
    )
