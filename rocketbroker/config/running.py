# -*- test-case-name: tests.config.test_running -*-
"""Changes of settings while a server runs: what a request may change (25 and 318).

RocketMQ sets whatever a request names, but for a black list, and ignores what it does
not know. Paths and numbers of processes that came this way ended in shell commands
(CVE-2023-33246) and in files anywhere on the disk (CVE-2023-37582), and an operator who
misspelt a key was told of a success. Here there is an allow-list, the keys that are
L{declared so<rocketbroker.config.keyed.running>}: numbers, switches, and a few words,
none of which names a file, a command, a class or an address to speak to. The black list
refuses as RocketMQ's does; what a restart takes, and what nothing knows, is refused in
words; and of several changes in one request all are made or none.

A key of RocketMQ that has no effect here is accepted: a tool that sets it for a whole
cluster succeeds, and finds the value in its file and in the answer to request 26.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rocketbroker.config.keyed import KeyedOptions, did_you_mean
from rocketbroker.config.unsupported import REMOVED, UnsupportedKey, check_supported
from rocketbroker.errors import ConfigurationError, NoPermission, SystemFailure

#: How long the value of a setting may be that a request changes.
MAX_VALUE: Final = 1000

#: What an error calls the source of such a value.
SOURCE: Final = "request"


def check_change(
    texts: Mapping[str, str],
    parts: Sequence[KeyedOptions],
    never: Iterable[str],
    black_list: str,
    unsupported: Sequence[UnsupportedKey],
) -> None:
    """Refuse a change as a whole if any part of it cannot be made.

    @param texts: the values that a request wants, by key.
    @param parts: all options as they are.
    @param never: keys that are refused, whatever C{black_list} says.
    @param black_list: configBlackList.
    @param unsupported: settings that would refuse the start.
    @raise NoPermission: a key that is black-listed, not known, or read at the start.
    @raise SystemFailure: a value that does not fit.
    """
    black = {*never, *(key.strip() for key in black_list.split(";"))}
    if not black.isdisjoint(texts):
        raise NoPermission("Can not update config in black list.")
    try:
        check_supported(texts, SOURCE, unsupported)
        changed = [(part, part.changed(texts, SOURCE)) for part in parts]
    except ConfigurationError as error:
        raise SystemFailure(str(error)) from error
    known = {each.key for each in unsupported}
    for key, text in texts.items():
        _check_text(key, text)
    for before, after in changed:
        names, allowed = before.keys(), before.running_keys()
        known.update(names)
        for key in texts.keys() & (names.keys() - allowed):
            name = names[key]
            if name in before.ABOUT and getattr(before, name) != getattr(after, name):
                raise NoPermission(
                    f"Can not update config {key} while running: it needs a restart."
                )
    for key in texts:
        if key in REMOVED:
            raise NoPermission(
                f"Can not update config {key}: it was removed: {REMOVED[key]}."
            )
        if key not in known:
            raise NoPermission(
                f"Can not update config {key[:MAX_VALUE]}: it is not known here."
                + did_you_mean(key[:MAX_VALUE], known)
            )


def _check_text(key: str, text: str) -> None:
    """Refuse what nobody means, and what would break the answer to request 26."""
    if len(text) > MAX_VALUE:
        raise SystemFailure(f"{key} cannot have more than {MAX_VALUE} characters.")
    if not text.isprintable():
        raise SystemFailure(f"{key} cannot be {text!r}: there is a control character.")


def running_only(
    texts: Mapping[str, str], classes: Iterable[type[KeyedOptions]]
) -> dict[str, str]:
    """Those of C{texts} that a request may have set.

    A start takes no more than that from a file that only requests write: RocketMQ
    writes all settings to it, ports and paths among them.
    """
    allowed = {key for each in classes for key in each.running_keys()}
    return {key: text for key, text in texts.items() if key in allowed}
