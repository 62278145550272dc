# -*- test-case-name: tests.testing.simulation -*-
"""The operations of clients, and their answers, as values without a form on a wire."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

#: Codes of answers (L{rocketbroker.wire.codes.ResponseCode}).
DONE: Final = 0
BUSY: Final = 2
TOPIC_NOT_EXIST: Final = 17
NOT_FOUND: Final = 19
ASK_AGAIN: Final = 20
MOVED: Final = 21
INVALID_PARAMETER: Final = 29


class Message(NamedTuple):
    """A message to be sent; no other has the same body."""

    body: bytes
    tag: str = ""


class Send(NamedTuple):
    """One request that sends a message, or a batch of several with the same tag, to one
    queue."""

    topic: str
    queue_id: int
    messages: tuple[Message, ...]


class Pull(NamedTuple):
    """A pull.

    @ivar tags: those that are wanted; none: all.
    @ivar wait_ms: how long it may wait at the end of the queue.
    @ivar is_lite: whether it is one that no worker answers.
    """

    topic: str
    queue_id: int
    offset: int
    most: int = 32
    tags: tuple[str, ...] = ()
    wait_ms: int = 0
    is_lite: bool = False


class Delete(NamedTuple):
    """The deletion of a topic."""

    topic: str


class Create(NamedTuple):
    """A topic is made, or gets another number of queues.

    @ivar is_batch: whether the queues of a topic that is made are batch queues.
    """

    topic: str
    queues: int
    is_batch: bool = False


class Clean(NamedTuple):
    """Expired files are removed soon."""


Operation: TypeAlias = Send | Pull | Delete | Create | Clean


class Found(NamedTuple):
    """A message as it was pulled; one of an inner batch, taken out of it."""

    offset: int
    position: int
    message: Message


class Sent(NamedTuple):
    """The answer to L{Send}.

    @ivar offset: of the first message.
    @ivar positions: of each record: of each message, or one of all.
    """

    code: int
    offset: int = -1
    positions: tuple[int, ...] = ()


class Pulled(NamedTuple):
    """The answer to L{Pull}.

    @ivar first: the lowest offset of the queue.
    @ivar end: the offset behind its last.
    """

    code: int
    next_offset: int = 0
    first: int = 0
    end: int = 0
    found: tuple[Found, ...] = ()


class Done(NamedTuple):
    """The answer to all else."""

    code: int


Answer: TypeAlias = Sent | Pulled | Done
