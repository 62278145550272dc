# -*- test-case-name: tests.filtering.test_tags -*-
"""Tag expressions: C{*}, or tags separated by C{||}.

The broker sees only the 32-bit hash of a message's tag, and passes a message whose tag
happens to have the hash of a wanted one; the consumer then compares the tags
themselves. So the broker may pass too much, and never too little.

C{docs/facts/broker.md} 13.1; C{docs/facts/client.md} 16.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.tag_codes import TagCodes

#: The expression that wants everything.
ALL: Final = "*"

SEPARATOR: Final = "||"

# Types of expressions.
TAG: Final = "TAG"
SQL92: Final = "SQL92"

#: An expression is looked at for each pull that carries it; more tags than this are
#: no subscription but an attack.
MAX_TAGS: Final = 4096

#: How many characters they have together, and into how many parts an expression is
#: taken apart, empty and repeated ones with the others: to take it apart is to take no
#: longer than the tags that are left.
MAX_CHARACTERS: Final = 128 << 10
MAX_PARTS: Final = 4 * MAX_TAGS


def is_tag_type(expression_type: str | None) -> bool:
    """Whether that type of expression is about tags: none and an empty one are."""
    return not expression_type or expression_type == TAG


@final
class TagFilter:
    """The filter of a tag expression.

    @ivar expression: as it was given, C{*} for none.
    @ivar tags: the tags, empty if it wants everything.
    @ivar codes: their codes.
    @ivar wants_all: whether it wants everything.
    """

    __slots__ = ("codes", "expression", "tags", "wants_all")

    def __init__(
        self, expression: str, tags: Iterable[str], codes: Iterable[int]
    ) -> None:
        """
        @param codes: as the consumer sent them, or of the tags.
        """
        self.expression = expression
        self.tags = frozenset(tags)
        self.codes = frozenset(codes)
        self.wants_all = expression == ALL

    def __reduce__(self) -> tuple[object, ...]:
        return TagFilter, (self.expression, self.tags, self.codes)

    def __repr__(self) -> str:
        return f"<wants {self.expression}>"

    def matches_code(self, code: int | None) -> bool:
        """Whether the broker passes a message.

        @param code: as it stands in the queue, 64 bits, of which 32 count; None if it
            is not known.
        """
        return self.wants_all or TagCodes(self.codes)(code)

    def matcher(self) -> TagCodes | None:
        """The tag codes for the store's C{read}: None if every message matches."""
        return None if self.wants_all else TagCodes(self.codes)


def parse(expression: str | None, expression_type: str | None = TAG) -> TagFilter:
    """The filter of an expression.

    @param expression: None and an empty one want everything.
    @param expression_type: with the empty type, which is not the same as none, the
        expression is not taken apart: C{*} wants everything and anything else nothing.
    @raise SubscriptionParseFailed: it holds separators and nothing else, too many
        tags, is too long, or is not about tags.
    """
    if not is_tag_type(expression_type):
        raise SubscriptionParseFailed(
            f"expressions of type {expression_type} are not supported"
        )
    if not expression or expression == ALL:
        return TagFilter(ALL, (), ())
    if len(expression) > MAX_CHARACTERS:
        raise SubscriptionParseFailed(
            f"the expression has {len(expression)} characters, at most {MAX_CHARACTERS}"
        )
    if expression_type == "":
        return TagFilter(expression, (), ())
    count = expression.count(SEPARATOR) + 1
    if count > MAX_PARTS:
        raise SubscriptionParseFailed(
            f"the expression has {count} parts, at most {MAX_PARTS}"
        )
    tags = {tag for part in expression.split(SEPARATOR) if (tag := part.strip())}
    if not tags and expression.strip():
        raise SubscriptionParseFailed("the expression holds only separators")
    if len(tags) > MAX_TAGS:
        raise SubscriptionParseFailed(
            f"the expression holds {len(tags)} tags, at most {MAX_TAGS}"
        )
    return TagFilter(expression, tags, [tag_code(tag) for tag in tags])
