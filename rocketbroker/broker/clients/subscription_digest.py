# -*- test-case-name: tests.broker.clients.test_subscription_digest -*-
"""The subscriptions of one member, as one value that is cheap to compare.

Each heartbeat makes one, so it is small. Two members subscribe to the same if their
digests are equal, in whichever order their clients list topics and tags."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from rocketbroker.filtering import tags
from rocketbroker.records.names import is_retry_topic
from rocketbroker.wire.bodies.heartbeats import SubscriptionData

#: Up to so many characters a member's subscriptions are kept: one copy for members that
#: want the same, but each connection could be in many groups with others. 100 topics
#: with names and expressions of 40 characters take as much.
MAX_CHARACTERS: Final = 8192

#: Stands for the topic where there are more; the expression then is a digest.
TOO_LONG: Final = f"(more than {MAX_CHARACTERS} characters of subscriptions)"

ALL: Final = "*"

# Made once: json.dumps makes one for each call that wants other separators.
_encode = json.JSONEncoder(separators=(",", ":")).encode


def digest_of(subscriptions: list[SubscriptionData]) -> bytes:
    """The digest of subscriptions, for L{expressions}.

    Topics of messages that are consumed again are left out: clients add them as they
    need them, and nobody chooses them.
    """
    pairs = sorted(
        (subscription.topic, expression(subscription))
        for subscription in subscriptions
        if not is_retry_topic(subscription.topic)
    )
    value = _encode(pairs).encode("ascii")
    if len(value) <= MAX_CHARACTERS:
        return value
    digest = hashlib.sha256(value).hexdigest()
    return _encode([[TOO_LONG, digest]]).encode("ascii")


def expression(subscription: SubscriptionData) -> str:
    """The expression of a subscription: C{*}, C{a || b}, C{SQL92: a > 1}.

    Tags are sorted where they can all be kept; longer ones are as the client has them.
    """
    text = subscription.sub_string
    if not tags.is_tag_type(subscription.expression_type):
        return f"{subscription.expression_type}: {text}"
    if "|" not in text or len(text) > MAX_CHARACTERS:
        return text.strip() or ALL
    named = {part.strip() for part in text.split("||")}
    named.discard("")
    return " || ".join(sorted(named)) or ALL


def expressions(wants: bytes) -> dict[str, str]:
    """C{topic -> expression} of a digest."""
    return dict(json.loads(wants))
