# -*- test-case-name: tests.arrow.test_decoding -*-
"""Pieces of one large buffer as Arrow arrays, without a Python object for each.

One binary array lies over the whole buffer, with every position that matters as an
offset; C{take()} of every sixth element then is all bodies, and so on. Nothing is
copied before Arrow's own gather. Offsets are signed and have 32 bits, so no buffer may
have 2 GiB or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rocketbroker.arrow.layout import Bytes, Ints


def cut_and_take(buffer: Any, cuts: Ints, first: int, step: int) -> Any:
    """Every C{step}-th piece, from piece C{first} on.

    @param buffer: the bytes.
    @param cuts: ascending positions in it; piece C{i} is from C{cuts[i]} to
        C{cuts[i + 1]}.
    @return: a binary array with values of its own.
    """
    if len(cuts) < 2:
        return pa.array([], pa.binary())
    offsets = pa.py_buffer(np.ascontiguousarray(cuts, np.int32))
    pieces = pa.Array.from_buffers(
        pa.binary(), len(cuts) - 1, [None, offsets, pa.py_buffer(buffer)]
    )
    return pieces.take(pa.array(np.arange(first, len(cuts) - 1, step)))


def values_and_offsets(array: Any) -> tuple[Bytes, Ints]:
    """The bytes of a binary array, and where each element begins, and the last ends."""
    _, offsets, values = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset :][: len(array) + 1]
    data = np.frombuffer(values if values is not None else b"", np.uint8)
    first = int(ends[0])
    return data[first : int(ends[-1])], (ends - first).astype(np.int64)


def joined_rows(count: int, parts: Sequence[tuple[Ints, Any]]) -> Any:
    """One array of C{count} rows out of several.

    @param parts: for each, the numbers of the rows it gives, and these; together all
        rows, each once.
    """
    used = [(rows, values) for rows, values in parts if len(rows)]
    if len(used) == 1:
        return used[0][1]
    order = np.empty(count, np.int64)
    order[np.concatenate([rows for rows, _ in used])] = np.arange(count)
    return pa.concat_arrays([values for _, values in used]).take(pa.array(order))
