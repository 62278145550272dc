"""Frames captured from the official servers and clients.

The files in C{vectors/} have one frame a line: what sent it (C{4.9.8 client}, or
C{go-2.1.2 client} of the Go client), what received it, the header's serialization, the
request code, what it is (C{request}, C{oneway}, or C{answer} with its code), then the
whole frame as Base64.
"""

from __future__ import annotations

from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent / "vectors"


class Vector(NamedTuple):
    """One captured frame.

    @ivar label: where it came from.
    @ivar request_code: the code of the request, also of an answer.
    @ivar is_answer: whether it is an answer.
    @ivar frame: the whole frame.
    """

    label: str
    request_code: int
    is_answer: bool
    frame: bytes


@cache
def vectors() -> tuple[Vector, ...]:
    """All captured frames."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        for number, line in enumerate(path.read_text("ascii").splitlines(), 1):
            if line.startswith("#") or not line:
                continue
            *words, text = line.split(" ")
            found.append(
                Vector(
                    f"{path.name}:{number} {' '.join(words)}",
                    int(words[4]),
                    words[5] == "answer",
                    b64decode(text, validate=True),
                )
            )
    return tuple(found)
