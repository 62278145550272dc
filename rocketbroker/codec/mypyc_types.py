# -*- test-case-name: tests.codec.test_mypyc_types -*-
"""The names that mypyc knows: native integers, and words in bytes.

mypyc makes a few machine instructions of each, as it sees mypy_extensions and librt
where these names come from. What the interpreter gets instead stands below: neither
package is needed where nothing is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from librt.strings import BytesWriter as BytesWriter
    from librt.strings import read_i16_be as read_i16_be
    from librt.strings import read_i32_be as read_i32_be
    from librt.strings import read_i64_be as read_i64_be
    from librt.strings import write_i16_be as write_i16_be
    from librt.strings import write_i32_be as write_i32_be
    from librt.strings import write_i64_be as write_i64_be
    from mypy_extensions import i32 as i32
    from mypy_extensions import i64 as i64
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    from struct import Struct

    i32 = i64 = int

    _I16, _I32, _I64 = Struct(">h"), Struct(">i"), Struct(">q")

    def mypyc_attr(**_):
        """A decorator that changes nothing."""
        return lambda decorated: decorated

    class BytesWriter(bytearray):
        """Bytes that grow."""

        write = bytearray.extend

        def getvalue(self):
            """What was written."""
            return bytes(self)

        def truncate(self, size):
            """Keep the first C{size} bytes."""
            del self[size:]

    def read_i16_be(data, at):
        """The word of 16 bits at C{at}."""
        return _I16.unpack_from(data, at)[0]

    def read_i32_be(data, at):
        """The word of 32 bits at C{at}."""
        return _I32.unpack_from(data, at)[0]

    def read_i64_be(data, at):
        """The word of 64 bits at C{at}."""
        return _I64.unpack_from(data, at)[0]

    def write_i16_be(writer, number):
        """Write a word of 16 bits."""
        writer.extend(_I16.pack(number))

    def write_i32_be(writer, number):
        """Write a word of 32 bits."""
        writer.extend(_I32.pack(number))

    def write_i64_be(writer, number):
        """Write a word of 64 bits."""
        writer.extend(_I64.pack(number))
