# -*- test-case-name: tests.records.test_compression -*-
"""Bodies made small by the producer and large again by the consumer.

The broker never looks inside. Formats: C{docs/facts/client.md} 11. What follows the
end of the compressed stream is passed over, as the Java client does.

What is not in Python itself is imported with the first body of its kind: most servers
never meet one.
"""

from __future__ import annotations

import zlib
from typing import Final

from rocketbroker.records.malformed import Malformed

#: The kinds, as they stand in the system flag.
OLD_ZLIB: Final = 0
LZ4: Final = 1
ZSTD: Final = 2
ZLIB: Final = 3

#: The level that clients use unless told otherwise.
DEFAULT_LEVEL: Final = 5

#: A body of a few bytes can claim to be gigabytes. Producers refuse bodies of more
#: than 4 MiB before they compress; this leaves room for those set up otherwise.
MAX_PLAIN_BYTES: Final = 64 * 1024 * 1024

#: zstd may ask for a window of gigabytes too.
_MAX_WINDOW: Final = 128 * 1024 * 1024


def compress(body: bytes, kind: int, level: int = DEFAULT_LEVEL) -> bytes:
    """C{body} made small.

    @param kind: L{ZLIB}, L{LZ4} or L{ZSTD}.
    @param level: 0 to 9; of zstd, up to 22.
    @raise Malformed: there is no such kind.
    """
    if kind in (ZLIB, OLD_ZLIB):
        return zlib.compress(body, min(level, 9))
    if kind == LZ4:
        import lz4.frame

        small: bytes = lz4.frame.compress(body, compression_level=0, store_size=False)
        return small
    if kind == ZSTD:
        import zstandard

        return zstandard.ZstdCompressor(level=level).compress(body)
    raise Malformed(f"no compression of kind {kind} is known")


def decompress(body: bytes, kind: int, most: int = MAX_PLAIN_BYTES) -> bytes:
    """C{body} made large again.

    @param most: how many bytes it may become.
    @raise Malformed: it is damaged or cut off, becomes too large, or there is no such
        kind.
    """
    try:
        if kind in (ZLIB, OLD_ZLIB):
            plain, whole = _inflate(body, most)
        elif kind == LZ4:
            plain, whole = _unpack_lz4(body, most)
        elif kind == ZSTD:
            plain, whole = _unpack_zstd(body, most)
        else:
            raise Malformed(f"no compression of kind {kind} is known")
    except (zlib.error, RuntimeError, EOFError) as problem:
        raise Malformed(f"the body cannot be decompressed: {problem}") from None
    if len(plain) > most:
        raise Malformed(f"the body becomes larger than {most} bytes")
    if not whole:
        raise Malformed("the compressed body is cut off")
    return plain


def _inflate(body: bytes, most: int) -> tuple[bytes, bool]:
    stream = zlib.decompressobj()
    plain = stream.decompress(body, most + 1)
    return plain, stream.eof


def _unpack_lz4(body: bytes, most: int) -> tuple[bytes, bool]:
    import lz4.frame

    stream = lz4.frame.LZ4FrameDecompressor()
    plain: bytes = stream.decompress(body, max_length=most + 1)
    return plain, bool(stream.eof)


def _unpack_zstd(body: bytes, most: int) -> tuple[bytes, bool]:
    import zstandard

    try:
        return _decompress_zstd(body, most)
    except zstandard.ZstdError as problem:
        raise RuntimeError(str(problem)) from None


def _decompress_zstd(body: bytes, most: int) -> tuple[bytes, bool]:
    import zstandard

    size = zstandard.frame_content_size(body)
    if size > most:
        raise Malformed(f"the body becomes larger than {most} bytes")
    stream = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    if size >= 0:
        return stream.decompress(body, max_output_size=most), True
    # Java's streams do not write the size. Only a call that is given the room says
    # whether the frame is whole; so it is tried with ever more.
    room = min(16 * len(body) + 65536, most)
    while True:
        try:
            return stream.decompress(body, max_output_size=room), True
        except zstandard.ZstdError:
            if room == most:
                raise
        room = min(room * 8, most)
