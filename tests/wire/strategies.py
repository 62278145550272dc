"""Commands for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from rocketbroker.wire.codes import LANGUAGES
from rocketbroker.wire.command import Command

INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
#: What UTF-8 can carry.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def commands(
    numbers: st.SearchStrategy[int] = INT32, least: int = 0
) -> st.SearchStrategy[Command]:
    """Any command that a header can carry.

    @param numbers: codes and versions.
    @param least: the least length of strings, and the least number of fields: 1 for the
        binary header, which has no empty ones.
    """
    texts = st.text(
        st.characters(exclude_categories=["Cs"]), min_size=least, max_size=12
    )
    return st.builds(
        Command,
        numbers,
        st.none() | st.dictionaries(texts, texts, min_size=least, max_size=5),
        st.binary(max_size=20),
        opaque=INT32,
        flag=INT32,
        version=numbers,
        language=st.none() | st.sampled_from(LANGUAGES),
        remark=st.none() | texts,
    )


def parts(command: Command) -> tuple[object, ...]:
    """All of a command, to be compared."""
    return (
        command.code,
        command.ext,
        command.body,
        command.opaque,
        command.flag,
        command.version,
        command.language,
        command.remark,
    )
