"""What the pages tell a reader to do: README.rst and docs/*.rst as steps.

A step is a command, a program or a query of a literal block (C{::} or C{code-block}),
as it stands there, in the order of the page; or an address of HTTP, or an C{eval}, in
the text. A block that is none of these, as a drawing, is a step of the kind C{text}.
Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

#: The pages in the order in which a reader comes to them; others follow by name.
FIRST = ("README.rst", "docs/command-line.rst", "docs/operations.rst")

#: Pages whose programs go on from one another: they are one, where the last stands.
JOINED = ("docs/spark.rst",)

#: With what a block of commands begins.
COMMAND = re.compile(
    r"(python3|pip|rocketbroker|twistd|curl|useradd|mkdir|tail|/opt/\S+|for|docker|"
    r"podman|buildah|kubectl|cp|cd|git|export|eval|\.) "
)

#: With what a block in Python begins.
PROGRAM = re.compile(r"(import|from) \w")

#: An address of HTTP in the text: a path that is no place in the file system.
ADDRESS = re.compile(r"``(/(?!etc/|opt/|var/|data/|usr/|home/)[a-z]+(?:/[a-z]+)*)``")

#: A command in the text that a reader types as it stands.
TYPED = re.compile(r"``(eval [^`]+)``")

#: A line of a file of settings.
SETTING = re.compile(r"\w+=")


class Step(NamedTuple):
    """One thing to do.

    @ivar page: where it stands, relative to the checkout.
    @ivar line: its number in the page.
    @ivar kind: C{shell}, C{python}, C{sql}, C{settings}, C{address} or C{text}.
    @ivar text: what it is, without indentation.
    @ivar output: what the page says that it prints; empty if it says nothing.
    """

    page: str
    line: int
    kind: str
    text: str
    output: str = ""

    @property
    def where(self) -> str:
        """Page and line, as compilers say them."""
        return f"{self.page}:{self.line}"


class Block(NamedTuple):
    """A literal block.

    @ivar line: the number of its first line.
    @ivar language: what C{code-block} names; empty behind C{::}.
    @ivar lines: its lines without indentation.
    """

    line: int
    language: str
    lines: tuple[str, ...]


def pages() -> list[str]:
    """README.rst and docs/*.rst, relative to the checkout."""
    others = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.rst"))
    return [*FIRST, *(page for page in others if page not in FIRST)]


def blocks(text: str) -> Iterator[Block]:
    """The literal blocks of a page."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        directive = re.match(r" *\.\. code-block:: *(\w*)", line)
        is_comment = line.lstrip().startswith("..")
        if not (directive or (line.rstrip().endswith("::") and not is_comment)):
            continue
        depth = indent(line)
        first = number
        while number < len(lines) and (
            not lines[number].strip() or indent(lines[number]) > depth
        ):
            number += 1
        while first < number and not lines[first].strip():
            first += 1
        last = number
        while last > first and not lines[last - 1].strip():
            last -= 1
        inner = lines[first:last]
        left = min((indent(line) for line in inner if line.strip()), default=0)
        language = directive[1] if directive else ""
        yield Block(first + 1, language, tuple(line[left:] for line in inner))


def indent(line: str) -> int:
    """How many spaces a line begins with."""
    return len(line) - len(line.lstrip())


def kind_of(block: Block) -> str:
    """What a block is, by its language or how it begins."""
    if block.language in ("bash", "sh", "console"):
        return "shell"
    if block.language:
        return block.language if block.language in ("python", "sql") else "text"
    first = block.lines[0] if block.lines else ""
    if first.startswith("$ ") or COMMAND.match(first):
        return "shell"
    if PROGRAM.match(first):
        return "python"
    filled = [line for line in block.lines if line.strip()]
    if filled and all(SETTING.match(line) for line in filled):
        return "settings"
    return "text"


def commands(block: Block) -> Iterator[tuple[int, str, str]]:
    """The commands of a block in the shell: number of the line, text, output.

    Lines behind one that begins with C{$} are what it prints. A loop, and a line that
    ends in a backslash, go on.
    """
    number = 0
    is_transcript = block.lines[0].startswith("$ ")
    while number < len(block.lines):
        begun = number
        text = block.lines[number]
        number += 1
        if not text.strip():
            continue
        end = r"done\b" if text.startswith("for ") else ""
        while number < len(block.lines) and (
            (end and not re.search(f"^{end}", text, re.MULTILINE))
            or text.endswith("\\")
        ):
            text += "\n" + block.lines[number]
            number += 1
        output = []
        while (
            is_transcript
            and number < len(block.lines)
            and not block.lines[number].startswith("$ ")
        ):
            output.append(block.lines[number])
            number += 1
        yield block.line + begun, text.removeprefix("$ "), "\n".join(output)


def steps(page: str, text: str) -> list[Step]:
    """The steps of a page.

    @param page: its name.
    @param text: what stands in it.
    """
    found: list[Step] = []
    for block in blocks(text):
        kind = kind_of(block)
        if kind == "shell":
            for line, command, output in commands(block):
                found.append(Step(page, line, kind, command, output))
            continue
        program = "\n".join(block.lines) + "\n"
        if kind == "python" and page in JOINED:
            before = [step for step in found if step.kind == kind]
            found = [step for step in found if step.kind != kind]
            program = "\n".join([*(step.text for step in before), program])
        found.append(Step(page, block.line, kind, program))
    named: dict[str, Step] = {}
    for number, sentence in enumerate(text.splitlines(), 1):
        for kind, expression in (("address", ADDRESS), ("shell", TYPED)):
            for what in expression.findall(sentence):
                named.setdefault(what, Step(page, number, kind, what))
    return sorted([*found, *named.values()], key=lambda step: step.line)


def all_steps() -> list[Step]:
    """The steps of all pages."""
    return [
        step
        for page in pages()
        for step in steps(page, (ROOT / page).read_text("utf-8"))
    ]
