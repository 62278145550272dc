# -*- test-case-name: tests.client.test_subscription -*-
"""Subscriptions: the messages of a topic that a group wants. Pure.

Members of one group have to want the same, as in Java: the broker keeps one
subscription for each topic of a group, the newest. C{docs/facts/client.md} 16.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import attrs

from rocketbroker.errors import ConfigurationError, SubscriptionParseFailed
from rocketbroker.filtering import tags as tag_filter
from rocketbroker.records import names
from rocketbroker.wire.bodies.heartbeats import SubscriptionData

#: What no tag looks like, and every SQL expression has.
_SQL: Final = re.compile(r"[=<>'()]|\s(is|in|between|and|or|contains)\s", re.IGNORECASE)


@attrs.frozen
class Subscription:
    """What a group wants of one topic.

    @ivar expression: C{*}, tags with C{||} between, or SQL92.
    @ivar kind: C{TAG} or C{SQL92}.
    @ivar tags: those that are wanted; empty for all, and for SQL92.
    @ivar origin: the topic to which its messages were sent, if that is another one and
        the messages do not say it.
    """

    topic: str
    expression: str = tag_filter.ALL
    kind: str = tag_filter.TAG
    tags: frozenset[str] = frozenset()
    origin: str = ""

    def wants(self, tag: str | None) -> bool:
        """Whether the message is one that was asked for.

        The broker goes by hash codes of tags, so it may give too many; SQL92 it checks
        exactly.
        """
        return not self.tags or tag in self.tags

    def data(self, version: int) -> SubscriptionData:
        """As heartbeats carry it.

        @param version: when it was made, in ms since 1970; brokers keep the newest.
        """
        if self.kind != tag_filter.TAG:
            return SubscriptionData(
                topic=self.topic,
                sub_string=self.expression,
                sub_version=version,
                expression_type=self.kind,
            )
        parsed = tag_filter.parse(self.expression)
        return SubscriptionData(
            topic=self.topic,
            sub_string=self.expression,
            tags_set=sorted(parsed.tags),
            code_set=sorted(parsed.codes),
            sub_version=version,
        )


def subscription(
    topic: str, tags: str | Iterable[str] | None = None, sql: str | None = None
) -> Subscription:
    """A subscription as a user says it.

    @param tags: C{"a || b"}, a list of tags, or None for all messages.
    @param sql: an expression over properties, instead of tags.
    @raise ConfigurationError: it cannot be meant.
    """
    problem = names.topic_problem(topic) if isinstance(topic, str) else "It is no text."
    if problem is not None:
        raise ConfigurationError(f"the topic {topic!r} cannot be read: {problem}")
    if sql is not None:
        return _by_sql(topic, tags, sql)
    if tags is None:
        return Subscription(topic)
    expression = tags
    if not isinstance(expression, str):
        found = list(expression) if isinstance(expression, Iterable) else [expression]
        if not all(isinstance(tag, str) and tag.strip() for tag in found):
            raise ConfigurationError(f"tags are texts, not {tags!r}")
        expression = " || ".join(found)
    try:
        parsed = tag_filter.parse(expression)
    except SubscriptionParseFailed as wrong:
        raise ConfigurationError(f"the tags cannot be used: {wrong}") from None
    if _SQL.search(expression):
        raise ConfigurationError(
            f"{expression!r} is no list of tags; if it is an SQL expression, give it "
            "as sql="
        )
    return Subscription(
        topic, parsed.expression, tag_filter.TAG, frozenset(parsed.tags)
    )


def _by_sql(topic: str, tags: object, sql: str) -> Subscription:
    if tags is not None:
        raise ConfigurationError("a subscription has tags or an SQL expression: one")
    from rocketbroker.filtering import sql as sql92  # few programs need it

    if not isinstance(sql, str):
        raise ConfigurationError(f"an SQL expression is a text, not {sql!r}")
    try:
        sql92.compiled(sql)
    except SubscriptionParseFailed as wrong:
        raise ConfigurationError(
            f"the SQL expression cannot be used: {wrong}"
        ) from None
    return Subscription(topic, sql, tag_filter.SQL92)
