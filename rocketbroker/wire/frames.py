# -*- test-case-name: tests.wire.test_frames -*-
"""Commands as frames, and back, in both header serializations.

A frame (C{docs/facts/remoting.md} 1 to 3)::

    int32   length of all that follows
    uint8   serialization of the header: 0 JSON, 1 binary
    uint24  length of the header
    header
    body    the rest

A JSON header is read by msgspec when it is what every known client writes, and else by
the tolerant reader, because fastjson takes more than JSON and others rely on it.

A binary header cannot tell apart an empty string and null, nor no extension fields and
an empty table of them. Both sides lose that difference.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final

import msgspec

from rocketbroker.errors import LocalProtocolError, RemoteProtocolError
from rocketbroker.wire.codes import LANGUAGES
from rocketbroker.wire.command import BINARY, JSON, Command
from rocketbroker.wire.fields import integer_of
from rocketbroker.wire.json_reader import loads
from rocketbroker.wire.json_writer import quoted

#: The longest frame, its first word included: RocketMQ's default. A peer that gets
#: a longer one closes the connection.
MAX_BYTES: Final = 16 * 1024 * 1024

#: The longest header: its length has 24 bits.
MAX_HEADER_BYTES: Final = 0xFFFFFF

#: The longest header that is read. Properties of a message have 32 KiB at most; with
#: every second character escaped that is 115 KiB. One of 14 MiB takes half a second,
#: in which no other client is served.
MAX_READ_BYTES: Final = 256 * 1024

_UNKNOWN_LANGUAGE: Final = -1
_LANGUAGE_CODES: Final = {name: code for code, name in enumerate(LANGUAGES)}

_WORDS: Final = Struct(
    ">i"  # length of the rest
    "I"  # serialization (8 bits), length of the header (24 bits)
)

_WORD: Final = Struct(
    ">I"  # serialization (8 bits), length of the header (24 bits)
)

_BINARY_HEAD: Final = Struct(
    ">h"  # code
    "b"  # language
    "h"  # version
    "i"  # opaque
    "i"  # flag
    "i"  # length of the remark
)

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")


class _JsonHeader(msgspec.Struct, rename="camel"):
    """The header as the known clients write it."""

    code: int = 0
    ext_fields: dict[str, str] | None = None
    flag: int = 0
    language: str = "JAVA"
    opaque: int = 0
    remark: str | None = None
    version: int = 0


_json_header: Final = msgspec.json.Decoder(_JsonHeader)


def encode(
    command: Command, serialization: int = JSON, max_bytes: int = MAX_BYTES
) -> bytes:
    """The whole frame.

    @param serialization: L{JSON} or L{BINARY}.
    @param max_bytes: the longest frame that the peer takes.
    @raise LocalProtocolError: the protocol cannot carry it.
    """
    if serialization == JSON:
        header = _encode_json(command)
    elif serialization == BINARY:
        header = _encode_binary(command)
    else:
        raise LocalProtocolError(f"there is no serialization {serialization}")
    if len(header) > MAX_HEADER_BYTES:
        raise LocalProtocolError(f"a header of {len(header)} bytes")
    length = 4 + len(header) + len(command.body)
    if length + 4 > max_bytes:
        raise LocalProtocolError(
            f"a frame of {length + 4} bytes, the most is {max_bytes}"
        )
    words = _WORDS.pack(length, serialization << 24 | len(header))
    return b"".join((words, header, command.body))


def decode(payload: bytes) -> Command:
    """A command from a frame without its first word.

    @raise RemoteProtocolError: it is none.
    """
    if len(payload) < 4:
        raise RemoteProtocolError("a frame without its second word")
    (word,) = _WORD.unpack_from(payload)
    length = word & MAX_HEADER_BYTES
    if length > len(payload) - 4:
        raise RemoteProtocolError(
            f"a header of {length} bytes in a frame of {len(payload)}"
        )
    if length > MAX_READ_BYTES:
        raise long_header(length)
    serialization = word >> 24
    if serialization == JSON:
        command = _decode_json(payload[4 : 4 + length])
        command.body = payload[4 + length :]
        return command
    if serialization == BINARY:
        return _decode_binary(payload, length)
    raise RemoteProtocolError(f"a header serialization {serialization}")


def long_header(length: int) -> RemoteProtocolError:
    """The error for a header that is not read."""
    return RemoteProtocolError(
        f"a header of {length} bytes, the most is {MAX_READ_BYTES}"
    )


# JSON


def _encode_json(command: Command) -> bytes:
    """The JSON header, keys in Java's order."""
    for number in (command.code, command.opaque, command.flag, command.version):
        if not -0x80000000 <= number <= 0x7FFFFFFF:
            raise LocalProtocolError(f"{number} in a field of 32 bits")
    language = command.language
    if language is None:
        language_text = "null"
    elif language in _LANGUAGE_CODES:
        language_text = f'"{language}"'
    else:
        raise LocalProtocolError(f"there is no language {language!r}")
    ext = ""
    if command.ext is not None:
        fields = [f"{quoted(key)}:{quoted(text)}" for key, text in command.ext.items()]
        ext = f'"extFields":{{{",".join(fields)}}},'
    remark = ""
    if command.remark is not None:
        remark = f'"remark":{quoted(command.remark)},'
    header = (
        f'{{"code":{int(command.code)},{ext}"flag":{command.flag},'
        f'"language":{language_text},"opaque":{command.opaque},{remark}'
        f'"serializeTypeCurrentRPC":"JSON","version":{command.version}}}'
    )
    return _utf8(header)


def _utf8(text: str) -> bytes:
    """UTF-8, which has no half of a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as e:
        raise LocalProtocolError(f"a string that is not Unicode: {e.reason}") from e


def _decode_json(header: bytes) -> Command:
    """A command without its body."""
    try:
        head = _json_header.decode(header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_tolerantly(header)
    if not (
        -0x80000000 <= head.code <= 0x7FFFFFFF
        and -0x80000000 <= head.opaque <= 0x7FFFFFFF
        and -0x80000000 <= head.flag <= 0x7FFFFFFF
        and -0x80000000 <= head.version <= 0x7FFFFFFF
    ):
        raise RemoteProtocolError("a number in the header exceeds 32 bits")
    return Command(
        head.code,
        head.ext_fields,
        opaque=head.opaque,
        flag=head.flag,
        version=head.version,
        language=head.language if head.language in _LANGUAGE_CODES else None,
        remark=head.remark,
    )


def _decode_tolerantly(header: bytes) -> Command:
    """A command from a header that only fastjson takes."""
    fields = loads(header)
    if not isinstance(fields, dict):
        raise RemoteProtocolError("a header that is not an object")
    remark = fields.get("remark")
    return Command(
        _int32(fields, "code"),
        _ext(fields.get("extFields")),
        opaque=_int32(fields, "opaque"),
        flag=_int32(fields, "flag"),
        version=_int32(fields, "version"),
        language=_language(fields.get("language", "JAVA")),
        remark=None if remark is None else _text(remark),
    )


def _int32(fields: dict[object, object], name: str) -> int:
    """A number, or one in quotes; 0 if it is missing or null."""
    value = fields.get(name)
    if value is None or value == "":
        return 0
    number = integer_of(value)
    if number is None or not -0x80000000 <= number <= 0x7FFFFFFF:
        raise RemoteProtocolError(f"{name} is not a number of 32 bits")
    return number


def _language(value: object) -> str | None:
    """A language by name, or by its place in the table."""
    if isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value < len(LANGUAGES):
            return LANGUAGES[value]
        raise RemoteProtocolError(f"a language {value}")
    return value if isinstance(value, str) and value in _LANGUAGE_CODES else None


def _ext(value: object) -> dict[str, str] | None:
    """Extension fields; nested ones and nulls are left out."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise RemoteProtocolError("extFields is not an object")
    return {
        _text(key): _text(field)
        for key, field in value.items()
        if isinstance(field, str | int | float) and isinstance(key, str | int)
    }


def _text(value: object) -> str:
    """A value as fastjson makes a string of it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# Binary


def _encode_binary(command: Command) -> bytes:
    """The binary header."""
    language = _UNKNOWN_LANGUAGE
    if command.language is not None:
        try:
            language = _LANGUAGE_CODES[command.language]
        except KeyError as e:
            raise LocalProtocolError(f"there is no language {e}") from e
    fields = []
    for key, value in (command.ext or {}).items():
        key_bytes = _utf8(key)
        value_bytes = _utf8(value)
        if len(key_bytes) > 0x7FFF:
            raise LocalProtocolError(f"a key of {len(key_bytes)} bytes")
        fields += [
            _INT16.pack(len(key_bytes)),
            key_bytes,
            _INT32.pack(len(value_bytes)),
            value_bytes,
        ]
    remark = _utf8(command.remark or "")
    ext = b"".join(fields)
    try:
        head = _BINARY_HEAD.pack(
            command.code,
            language,
            command.version,
            command.opaque,
            command.flag,
            len(remark),
        )
    except error as e:
        raise LocalProtocolError(f"a number that the binary header lacks: {e}") from e
    return b"".join((head, remark, _INT32.pack(len(ext)), ext))


def _decode_binary(payload: bytes, length: int) -> Command:
    """A command with its body, which begins where the header's reader stops.

    RocketMQ checks lengths against the header's and does not skip to its end;
    a field that runs past the end of the frame is an error.

    @param length: the length of the header, at most that of the rest of C{payload}.
    """
    ext: dict[str, str] | None = None
    try:
        code, language, version, opaque, flag, size = _BINARY_HEAD.unpack_from(
            payload, 4
        )
        remark, at = _string(payload, 21, size, length)
        (size,) = _INT32.unpack_from(payload, at)
        at += 4
        if size > length:
            raise RemoteProtocolError("extension fields longer than the header")
        if size > 0:
            ext = {}
            end = at + size
            while at < end:
                (part,) = _INT16.unpack_from(payload, at)
                key, at = _string(payload, at + 2, part, size)
                (part,) = _INT32.unpack_from(payload, at)
                value, at = _string(payload, at + 4, part, size)
                if key and value:
                    ext[key] = value
                else:
                    ext.pop(key, None)
    except error as e:
        raise RemoteProtocolError("a binary header that ends too early") from e
    body_end = at + len(payload) - 4 - length
    if body_end > len(payload) and length < len(payload) - 4:
        raise RemoteProtocolError("a binary header that runs into the body")
    return Command(
        code,
        ext,
        payload[at:body_end],
        opaque=opaque,
        flag=flag,
        version=version,
        language=LANGUAGES[language] if 0 <= language < len(LANGUAGES) else None,
        remark=remark or None,
    )


def _string(payload: bytes, at: int, size: int, max_size: int) -> tuple[str, int]:
    """The string of C{size} bytes at C{at}, and the position behind it."""
    end = at + size
    if not 0 <= size <= max_size or end > len(payload):
        raise RemoteProtocolError(f"a string of {size} bytes in a binary header")
    return payload[at:end].decode("utf-8", "replace"), end
