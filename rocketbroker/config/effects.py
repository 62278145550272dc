# -*- test-case-name: tests.config.test_effects -*-
"""The effects of settings: which keys have one, and which keys of a file have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rocketbroker.config.keyed import KeyedOptions
from rocketbroker.config.unsupported import BROKER, NAME_SERVER, SERVER

#: Keys of two classes of options, of which only one is read.
SHARED_KEYS: Final = frozenset({"listenPort", "rocketmqHome"})

#: The keys of the settings that refuse the start.
REFUSED_KEYS: Final = frozenset(each.key for each in (*SERVER, *BROKER, *NAME_SERVER))


def keys_without_effect(options: type[KeyedOptions]) -> list[str]:
    """The keys that are known and that nothing reads."""
    return [
        key
        for key, name in options.keys().items()
        if name not in options.ABOUT and key not in REFUSED_KEYS | SHARED_KEYS
    ]


def ignored(given: Iterable[str], parts: Iterable[KeyedOptions]) -> list[str]:
    """The keys that were set to something other than the default, without effect.

    @param given: the keys that were set.
    @param parts: the options that they set.
    """
    found = []
    for part in parts:
        standard = type(part)()
        names = part.keys()
        for key in keys_without_effect(type(part)):
            name = names[key]
            if key in given and getattr(part, name) != getattr(standard, name):
                found.append(key)
    return sorted(set(found))
