# -*- test-case-name: tests.auth.test_request -*-
"""A request as the rules see it: who asks, from where, for what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from rocketbroker.wire.command import Command

#: The extension fields of a signed request.
ACCESS_KEY: Final = "AccessKey"
SIGNATURE: Final = "Signature"
SECURITY_TOKEN: Final = "SecurityToken"

_NO_FIELDS: Final[Mapping[str, str]] = {}


@final
class Asked:
    """What a request asks for.

    One is made for each request, sends and pulls too: it only refers to what is there.

    @ivar code: the request code.
    @ivar fields: the extension fields as they were received, none if there were none.
    @ivar body: the body; signatures cover it, and some codes name resources in it.
    @ivar source: the client's address without its port, empty if it is not known.
    @ivar version: the ordinal of the client's release.
    """

    __slots__ = ("body", "code", "fields", "source", "version")

    def __init__(
        self,
        code: int,
        fields: Mapping[str, str] | None,
        body: bytes | memoryview = b"",
        *,
        source: str = "",
        version: int = 0,
    ) -> None:
        self.code = code
        self.fields = _NO_FIELDS if fields is None else fields
        self.body = body
        self.source = source
        self.version = version

    def __repr__(self) -> str:
        return f"<{self.code} from {self.source or 'nowhere'} by {self.access_key}>"

    @property
    def access_key(self) -> str | None:
        """The name of the account or user, as it was sent."""
        return self.fields.get(ACCESS_KEY)


def asked_by(command: Command, source: str) -> Asked:
    """What a command asks for.

    @param source: the client's address without its port.
    """
    return Asked(
        command.code,
        command.ext,
        command.body,
        source=source,
        version=command.version,
    )
