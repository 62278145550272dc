# -*- test-case-name: tests.threads -*-
"""The consumer that polls, for plain threads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, final

from rocketbroker.client import lite_pull
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.threads.loop_thread import LoopThread

A = TypeVar("A")
P = ParamSpec("P")
T = TypeVar("T")


def _polling(
    method: Callable[
        Concatenate[lite_pull.LitePullConsumer, P], Coroutine[Any, Any, T]
    ],
) -> Callable[Concatenate[LitePullConsumer, P], T]:
    """A method of a consumer that polls, which returns when it is done."""

    @wraps(method)
    def call(self: LitePullConsumer, /, *args: P.args, **options: P.kwargs) -> T:
        return self.thread.call(method(self.consumer, *args, **options))

    return call


@final
class LitePullConsumer:
    """See L{lite_pull.LitePullConsumer}.

    @ivar thread: where it runs.
    @ivar consumer: what stands behind it.
    """

    def __init__(
        self, thread: LoopThread, consumer: lite_pull.LitePullConsumer
    ) -> None:
        self.thread = thread
        self.consumer = consumer

    def __enter__(self) -> LitePullConsumer:
        self.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    start = _polling(lite_pull.LitePullConsumer.start)
    close = _polling(lite_pull.LitePullConsumer.close)
    poll = _polling(lite_pull.LitePullConsumer.poll)
    commit = _polling(lite_pull.LitePullConsumer.commit)
    committed = _polling(lite_pull.LitePullConsumer.committed)
    seek = _polling(lite_pull.LitePullConsumer.seek)
    seek_to_begin = _polling(lite_pull.LitePullConsumer.seek_to_begin)
    seek_to_end = _polling(lite_pull.LitePullConsumer.seek_to_end)
    offset_for_time = _polling(lite_pull.LitePullConsumer.offset_for_time)

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are ours now."""
        return self.consumer.queues

    def position(self, queue: MessageQueue) -> int:
        """See L{lite_pull.LitePullConsumer.position}."""
        return self.thread.call(_there(self.consumer.position, queue))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """See L{lite_pull.LitePullConsumer.pause}."""
        self.thread.call(_there(self.consumer.pause, [*queues]))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """See L{lite_pull.LitePullConsumer.resume}."""
        self.thread.call(_there(self.consumer.resume, [*queues]))


async def _there(function: Callable[[A], T], argument: A) -> T:
    """Call a function in the thread of the loop."""
    return function(argument)
