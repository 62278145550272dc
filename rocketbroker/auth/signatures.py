# -*- test-case-name: tests.auth.test_signatures -*-
"""Signatures of remoting requests: made for our clients, checked for those of others.

The content of a signature are the values of all extension fields but C{Signature}, one
behind the other in the order of the names, and then the body; the signature is its
HMAC-SHA1 with the secret key, in Base64. Both generations of access control have it
(C{docs/facts/security-metrics.md} 1; RocketMQ's C{AclUtils.combineRequestContent}).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping
from functools import lru_cache
from hashlib import sha1
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, Self

import attrs

from rocketbroker.auth.java_strings import code_units
from rocketbroker.auth.request import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE
from rocketbroker.errors import ConfigurationError, RemoteProtocolError
from rocketbroker.wire.fastjson import loads
from rocketbroker.wire.fields import Fields

if TYPE_CHECKING:
    from hashlib import _Hash

#: The bytes that SHA1 takes in at once.
BLOCK_BYTES: Final = 64

#: The field that says that a query (12) is for one message. Old clients set it behind
#: the signature, so that it is not part of theirs.
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"

#: The ordinal of V4_9_3, the last release whose clients do so.
LAST_UNSIGNED_QUERY: Final = 399


@attrs.frozen
class Credentials:
    """An account with its secrets, to sign requests with.

    @ivar access_key: the account's or user's name.
    @ivar secret_key: the secret, or the user's password.
    @ivar security_token: a token of a foreign authority, which servers only pass on.
    """

    access_key: str
    secret_key: str = attrs.field(repr=False)
    security_token: str | None = attrs.field(default=None, repr=False)

    @classmethod
    def from_json(cls, text: str, setting: str) -> Self | None:
        """Those of a setting: C{{"accessKey":"k","secretKey":"s"}}; None if the setting
        or one of the keys is blank.

        @raise ConfigurationError: it is no such object; the secret is not repeated.
        """
        if not text.strip():
            return None
        try:
            fields = Fields(loads(text), setting)
            access, secret = fields.text("accessKey"), fields.text("secretKey")
            token = fields.text("securityToken")
        except RemoteProtocolError:
            raise ConfigurationError(
                f'{setting} must be {{"accessKey":"NAME","secretKey":"SECRET"}}.'
            ) from None
        if not (access and access.strip() and secret and secret.strip()):
            return None
        return cls(access, secret, token)


def content(
    fields: Mapping[str, str],
    body: bytes | memoryview = b"",
    unsigned: Collection[str] = (),
) -> bytes:
    """The bytes that a signature covers.

    @param unsigned: names of fields that it does not cover, besides its own.
    """
    names = sorted(fields)
    if not "".join(names).isascii():
        names.sort(key=code_units)
    if unsigned:
        names = [name for name in names if name not in unsigned]
    values = [fields[name] for name in names if name != SIGNATURE]
    return b"".join(("".join(values).encode("utf-8", "replace"), body))


def signature(covered: bytes, secret_key: str) -> str:
    """The signature of a content."""
    return b64encode(mac(covered, secret_key)).decode("ascii")


def mac(covered: bytes, secret_key: str) -> bytes:
    """The bytes of a signature: HMAC-SHA1.

    C{hmac.digest} takes twice as long, as it takes in the key for each message.
    """
    inner, outer = _keyed(secret_key)
    inner, outer = inner.copy(), outer.copy()
    inner.update(covered)
    outer.update(inner.digest())
    return outer.digest()


@lru_cache(maxsize=1024)
def _keyed(secret_key: str) -> tuple[_Hash, _Hash]:
    """The two hashes of HMAC (RFC 2104) that have taken in a key, and nothing else."""
    key = secret_key.encode("utf-8", "replace")
    if len(key) > BLOCK_BYTES:
        key = sha1(key).digest()
    key = key.ljust(BLOCK_BYTES, b"\0")
    return sha1(bytes(b ^ 0x36 for b in key)), sha1(bytes(b ^ 0x5C for b in key))


def sign(
    fields: Mapping[str, str] | None, body: bytes, credentials: Credentials
) -> dict[str, str]:
    """The extension fields with those of a signed request.

    All other fields must be there already: one that comes later breaks the signature.
    """
    signed = dict(fields or ())
    signed[ACCESS_KEY] = credentials.access_key
    if credentials.security_token is not None:
        signed[SECURITY_TOKEN] = credentials.security_token
    signed[SIGNATURE] = signature(content(signed, body), credentials.secret_key)
    return signed


def verify(
    fields: Mapping[str, str],
    body: bytes | memoryview,
    secret_key: str,
    unsigned: Collection[str] = (),
) -> bool:
    """Whether the fields, as they were received, have the right signature."""
    given = fields.get(SIGNATURE)
    return given is not None and is_signature(
        given, content(fields, body, unsigned), secret_key
    )


def is_signature(given: str, covered: bytes, secret_key: str) -> bool:
    """Whether C{given} is the signature of a content; takes the same time for all."""
    return compare_digest(
        given.encode("utf-8", "replace"), signature(covered, secret_key).encode()
    )


def unsigned_fields(version: int) -> tuple[str, ...]:
    """The names of fields that clients of a release do not sign."""
    return (UNIQUE_KEY_QUERY,) if version <= LAST_UNSIGNED_QUERY else ()
