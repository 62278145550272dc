# -*- test-case-name: tests.wire.test_command -*-
"""One request or response, independent of how its header is written.

Flags and fields: C{docs/facts/remoting.md} 4.
"""

from __future__ import annotations

from typing import Final, final

#: Bit 0 of the flag: this is a response.
RESPONSE: Final = 1

#: Bit 1 of the flag: a request that wants no answer.
ONEWAY: Final = 2

#: The ordinal of V5_3_3, which we announce in every command we send: servers and
#: clients behave as that release does, and what others decide by the number is right
#: for them. Name servers give routes in standard JSON (from 401), brokers honour the
#: attempts of messages that are sent back (121), ask members how they are (62), and say
#: that they go away instead of breaking connections (475). docs/facts/remoting.md 4.4.
VERSION: Final = 479

#: Header serializations, the first byte of the frame's second word.
JSON: Final = 0
BINARY: Final = 1


@final
class Command:
    """A request or a response.

    @ivar code: the request code, or the response code (32 bits).
    @ivar opaque: the number that ties a response to its request (32 bits, signed).
    @ivar flag: L{RESPONSE} and L{ONEWAY}.
    @ivar version: the ordinal of the sender's release.
    @ivar language: the name of the sender's language, C{None} if it is not a known one.
    @ivar remark: free text of a response, C{None} for none.
    @ivar ext: the extension fields, C{None} if the sender sent none at all. A field
        whose value is null is left out.
    @ivar body: the body; no body and an empty one are the same on the wire.
    """

    __slots__ = (
        "body",
        "code",
        "ext",
        "flag",
        "language",
        "opaque",
        "remark",
        "version",
    )

    def __init__(
        self,
        code: int,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        opaque: int = 0,
        flag: int = 0,
        version: int = VERSION,
        language: str | None = "JAVA",
        remark: str | None = None,
    ) -> None:
        self.code = code
        self.ext = ext
        self.body = body
        self.opaque = opaque
        self.flag = flag
        self.version = version
        self.language = language
        self.remark = remark

    @property
    def is_response(self) -> bool:
        """Whether this answers a request of ours."""
        return bool(self.flag & RESPONSE)

    @property
    def is_oneway(self) -> bool:
        """Whether the sender wants no answer."""
        return bool(self.flag & ONEWAY)

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "request"
        return (
            f"<{kind} code={self.code} opaque={self.opaque} flag={self.flag} "
            f"remark={self.remark!r} ext={self.ext!r} body={len(self.body)} bytes>"
        )


def response_to(
    request: Command,
    code: int = 0,
    remark: str | None = None,
    ext: dict[str, str] | None = None,
    body: bytes = b"",
) -> Command:
    """A response to C{request}, with its opaque."""
    return Command(code, ext, body, opaque=request.opaque, flag=RESPONSE, remark=remark)
