# -*- test-case-name: tests.auth.test_decision -*-
"""A decision about a request: allowed or refused, and by which rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

import attrs

from rocketbroker.errors import BrokerError, NoPermission, SystemFailure

#: How many characters the names have together of a request whose decision is kept, and
#: how many names it has: those of requests that make the load are a topic and a group,
#: of 127 and 255 at most. All others are decided anew, as clients choose their length.
MAX_KEPT_CHARACTERS: Final = 512
MAX_KEPT_NAMES: Final = 2


def may_be_kept(names: Iterable[str | None]) -> bool:
    """Whether the decision about a request with these names may be kept."""
    lengths = [len(name or "") for name in names]
    return len(lengths) <= MAX_KEPT_NAMES and sum(lengths) <= MAX_KEPT_CHARACTERS


@attrs.frozen
class Decision:
    """Whether a request may go on.

    @ivar allowed: whether it may.
    @ivar rule: the rule that decided, in words for an operator.
    @ivar code: the response code of a refusal, 0 if it is allowed.
    @ivar remark: the words of a refusal, as RocketMQ's servers say them.
    """

    allowed: bool
    rule: str
    code: int = 0
    remark: str = ""

    @classmethod
    def allow(cls, rule: str) -> Self:
        """The request may go on."""
        return cls(True, rule)

    @classmethod
    def refuse(cls, rule: str, remark: str, code: int = NoPermission.code) -> Self:
        """The request is answered with that code."""
        return cls(False, rule, code, remark)

    def error(self) -> BrokerError:
        """The error that becomes the answer of a refused request."""
        assert not self.allowed
        kind = SystemFailure if self.code == SystemFailure.code else NoPermission
        return kind(self.remark)
