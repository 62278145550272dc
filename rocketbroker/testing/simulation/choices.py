# -*- test-case-name: tests.testing.simulation.test_choices -*-
"""The choice of the next operation, by dice with a seed.

Most operations are sends and pulls. Topics change in bursts, of one deletion or of
several behind one another, and are left alone in between for as long as workers need to
learn of it. A topic is not created, nor given other queues, while sends or a deletion
are under way, so that the model knows how many queues it has; deletions come at any
time but one at a time for each topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, final

from rocketbroker.testing.simulation.model import Model, Topic
from rocketbroker.testing.simulation.operations import (
    Clean,
    Create,
    Delete,
    Message,
    Operation,
    Pull,
    Send,
)

#: The most queues that a topic has; one that a send makes has as many.
MAX_QUEUES: Final = 4

#: What pulls want: all; one tag; two of them; a tag that no message has.
WANTED: Final = ((), (), ("red",), ("red", "blue"), ("none",))
TAGS: Final = ("", "red", "blue")

#: So many operations come between two bursts of changes.
QUIET: Final = (200, 2500)
BURST: Final = (1, 40)


@final
class Choices:
    """Chooses operations."""

    def __init__(
        self,
        dice: Random,
        model: Model,
        names: Sequence[str],
        with_batches: bool = True,
        longest_ms: int = 200,
    ) -> None:
        """
        @param names: of the topics.
        @param with_batches: whether some topics have batch queues.
        @param longest_ms: pulls wait no longer.
        """
        self._dice = dice
        self._model = model
        self._names = names
        self._with_batches = with_batches
        self._longest_ms = longest_ms
        self._serial = 0
        self._until_change = dice.randint(*QUIET)

    def next(self) -> Operation:
        """The next operation."""
        dice = self._dice
        name = dice.choice(self._names)
        topic = self._model.topic(name)
        self._until_change -= 1
        if self._until_change <= 0:
            change = self._change(name, topic)
            if change is not None:
                self._until_change = dice.randint(*dice.choice((QUIET, BURST)))
                return change
        is_gone = topic.is_absent(self._model.now + 1)
        if is_gone and not topic.has(Create, Send) and dice.random() < 0.4:
            is_batch = self._with_batches and dice.random() < 0.5
            return Create(name, dice.randint(1, MAX_QUEUES), is_batch)
        if topic.has(Create) or dice.random() < 0.55:
            return self._pull(name, topic)
        if dice.random() < 0.005:
            return Clean()
        return self._send(name, topic)

    def _change(self, name: str, topic: Topic) -> Operation | None:
        """A change of a topic; None if there can be none now."""
        dice, now = self._dice, self._model.now + 1
        if topic.has(Create, Delete) or topic.is_absent(now):
            return None
        is_quiet = not topic.has(Send) and not topic.may_be_absent(now)
        if is_quiet and dice.random() < 0.4:
            return Create(name, dice.randint(1, MAX_QUEUES))
        return Delete(name)

    def _queues(self, topic: Topic) -> int:
        """So many queues it has for certain."""
        counts = topic.queue_counts(self._model.now + 1)
        return min(counts, default=MAX_QUEUES)

    def _send(self, name: str, topic: Topic) -> Send:
        dice = self._dice
        tag = dice.choice(TAGS)
        messages = []
        for _ in range(dice.choice((1, 1, 1, 1, 5))):
            self._serial += 1
            size = min(2000, int(dice.paretovariate(1.0) * 30))
            body = b"%s %d " % (name.encode(), self._serial)
            messages.append(Message(body + b"." * size, tag))
        return Send(name, dice.randrange(self._queues(topic)), tuple(messages))

    def _pull(self, name: str, topic: Topic) -> Pull:
        dice = self._dice
        queue_id = dice.randrange(self._queues(topic))
        if dice.random() < 0.03:
            queue_id = dice.randrange(MAX_QUEUES)
        generations = topic.generations
        end = generations.queue(generations.now, queue_id).end
        offset = dice.choice(
            (
                0,
                dice.randint(0, end),
                max(0, end - dice.randint(0, 10)),
                end,
                end + dice.choice((0, 0, 1, 40)),
            )
        )
        return Pull(
            name,
            queue_id,
            offset,
            dice.choice((1, 8, 32)),
            dice.choice(WANTED),
            dice.choice((0, 0, 0, dice.randint(1, self._longest_ms))),
            dice.random() < 0.2,
        )
