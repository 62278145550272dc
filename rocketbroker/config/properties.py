# -*- test-case-name: tests.config.test_properties -*-
"""Java's .properties files, read as C{java.util.Properties} reads them.

  - A line that begins, after blanks, with C{#} or C{!} is a comment.
  - A line that ends in an odd number of backslashes goes on in the next one, whose
    leading blanks do not count.
  - The key ends at the first C{=}, C{:} or blank that has no backslash before it.
  - Backslash C{t}, C{n}, C{r}, C{f} and C{uXXXX} mean what they mean in Java; before
    any other character the backslash only vanishes.
  - The file is ISO-8859-1. Of two equal keys the later one counts.

What a broker sends to change settings (requests 25 and 318) is the same syntax.
Source: C{docs/facts/broker.md 1.2}.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rocketbroker.errors import ConfigurationError

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
#: A line with its end, and a last one without.
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_BLANKS: Final = " \t\f"
_KEY: Final = re.compile(
    r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)\Z", re.S
)
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.S)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAMES: Final = {char: letter for letter, char in _LETTERS.items()}


def _logical_lines(lines: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """The lines that say something, joined; each with the numbers of its first line
    and of the last one, from 1.

    @param lines: without their ends.
    """
    pending: list[str] = []
    first = number = 0
    for number, raw in enumerate(lines, 1):
        line = raw.lstrip(_BLANKS)
        if not pending:
            if not line or line[0] in "#!":
                continue
            first = number
        if _goes_on(line):
            pending.append(line[:-1])
            continue
        yield first, number, "".join([*pending, line])
        pending = []
    if pending:
        yield first, number, "".join(pending)


def _unescaped(text: str, where: str) -> str:
    """C{text} without its backslashes."""

    def one(match: re.Match[str]) -> str:
        what = match[1]
        if len(what) == 5:
            return chr(int(what[1:], 16))
        if what == "u":
            raise ConfigurationError(f"{where}: \\u needs four hexadecimal digits.")
        return _LETTERS.get(what, what)

    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(one, text)
    # Two escapes may be the halves of one character beyond the basic plane.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _goes_on(line: str) -> bool:
    """Whether C{line} ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def parse(text: str, source: str = "properties") -> dict[str, str]:
    """The keys and values of a properties text, in order.

    @param text: the text; a file's bytes decoded as ISO-8859-1.
    @param source: its name in an error, usually the file's path.
    @raise ConfigurationError: a backslash C{u} without four digits.
    """
    found: dict[str, str] = {}
    for number, _, line in _logical_lines(_LINE_END.split(text)):
        where = f"{source}, line {number}"
        key, value = _key_and_value(line)
        found[_unescaped(key, where)] = _unescaped(value, where)
    return found


def _key_and_value(line: str) -> tuple[str, str]:
    """The two parts of a logical line, with their backslashes."""
    match = _KEY.match(line)
    assert match is not None, "matches anything"
    return match[1], match[2]


def render(properties: Mapping[str, str]) -> str:
    """C{key=value} lines, sorted by key, as requests 26 and 319 answer.

    Nothing is escaped: RocketMQ does not either, and its tools split at the first C{=}.
    """
    return "".join(f"{key}={properties[key]}\n" for key in sorted(properties))


def written(properties: Mapping[str, str]) -> bytes:
    """A file's content from which L{read} makes the same keys and values."""
    lines = (
        f"{_escaped(key, True)}={_escaped(properties[key], False)}\n"
        for key in sorted(properties)
    )
    return "".join(lines).encode("ascii")


def edited(
    content: bytes, changes: Mapping[str, str], source: str = "properties"
) -> bytes:
    """A file's content with other values, and all else as it is.

    A key that is there gets its value in its place, in one line; of two equal keys the
    later one, which counts. A key that is not there comes at the end. No value can make
    a second key: what would end its line is escaped.

    @param source: the file's path, for an error.
    @raise ConfigurationError: the content is not well formed.
    """
    pieces = _LINE.findall(content.decode("iso-8859-1"))
    lines = [_LINE_END.sub("", piece) for piece in pieces]
    spans: dict[str, tuple[int, int]] = {}
    open_end = False
    for first, last, line in _logical_lines(lines):
        key = _unescaped(_key_and_value(line)[0], f"{source}, line {first}")
        spans[key] = (first - 1, last)
        open_end = last == len(lines) and _goes_on(lines[-1])
    end = "\n"
    if pieces and pieces[0] != lines[0]:
        end = pieces[0][len(lines[0]) :]
    if pieces and pieces[-1] == lines[-1]:
        pieces[-1] += end
    if open_end:
        # What is appended must not become part of it.
        pieces.append(end)
    for key, value in changes.items():
        line = f"{_escaped(key, True)}={_escaped(value, False)}{end}"
        if key not in spans:
            pieces.append(line)
            continue
        first, last = spans[key]
        pieces[first:last] = [line, *[""] * (last - first - 1)]
    return "".join(pieces).encode("iso-8859-1")


def _escaped(text: str, whole: bool) -> str:
    """C{text} as ASCII, with backslashes before characters with a meaning.

    @param whole: whether blanks count everywhere, as in a key, or only the first.
    """
    out = []
    for place, char in enumerate(text):
        if char in _NAMES:
            out.append("\\" + _NAMES[char])
        elif char in "\\=:#!" or (char == " " and (whole or place == 0)):
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass").hex()
            out += ["\\u" + units[i : i + 4] for i in range(0, len(units), 4)]
    return "".join(out)


def read(path: str) -> dict[str, str]:
    """The keys and values of a file.

    @raise ConfigurationError: it cannot be read or is not well formed; one sentence
        that names the path.
    """
    try:
        with open(path, encoding="iso-8859-1", newline="") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(
            f"Cannot read the settings file {path}: {reason}."
        ) from error
    return parse(text, path)
