# -*- test-case-name: tests.remoting.test_audit_line -*-
"""The audit line: one line of the log for each change that an administrator makes.

The line begins with the address that the request came from, as RocketMQ's tools say
nothing else about themselves. Texts from requests are cut to L{MAX_SHOWN} characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: So many characters of the changes stand in a line.
MAX_SHOWN: Final = 1000


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """The fields that a change sets, by their names in RocketMQ.

    @param before: the fields as they were; none for something new.

    >>> differences({"perm": 6, "order": False}, {"perm": 4, "order": False})
    'perm=4 (was 6)'
    >>> differences({}, {"perm": 6})
    'perm=6'
    """
    changed = [
        f"{key}={value} (was {before[key]})" if key in before else f"{key}={value}"
        for key, value in after.items()
        if key not in before or before[key] != value
    ]
    return ", ".join(changed)[:MAX_SHOWN]
