# -*- test-case-name: tests.cli.cluster.verbs.test_mqadmin -*-
"""The translation of one command of RocketMQ's mqadmin into calls of our verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from rocketbroker.cli.exit_status import USAGE, Failure

#: Values of options by their letters; a flag that is given is "true".
Values: TypeAlias = Mapping[str, str]

#: The words of one call of ours.
Call: TypeAlias = list[str]


@attrs.frozen
class Translation:
    """A command that we have.

    @ivar options: C{letter/name} each; a C{*} behind it is needed, a C{?} takes no
        value.
    @ivar calls: makes our calls.
    @ivar fallback: whether the second call is made only where the first one fails.
    @ivar password: the letter of an option whose value is a password: it is no word of
        a call, and is not shown.
    """

    options: str
    calls: Callable[[Values], list[Call]]
    fallback: bool = False
    password: str = ""


def place(values: Values) -> Call:
    """Where: C{-b} or C{-c}."""
    found = []
    for letter, option in (("b", "--broker"), ("c", "--cluster")):
        if letter in values:
            found += [option, values[letter]]
    return found


def broker(values: Values) -> str:
    """The broker of C{-b}, which our verb needs."""
    if "b" not in values:
        raise Failure("Give -b BROKER; 'rocketbroker cluster ls' shows them.", USAGE)
    return values["b"]
