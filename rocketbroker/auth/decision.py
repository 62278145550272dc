# -*- test-case-name: tests.auth.test_decision -*-
"""A decision about a request: allowed or refused, and by which rule."""

from __future__ import annotations

from typing import Self

import attrs

from rocketbroker.errors import BrokerError, NoPermission, SystemFailure


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
