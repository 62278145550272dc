"""Programs of users with each face, for checkers of types: nobody runs them.

What a face gives has the type that is asserted, also where a method is made of that of
the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import assert_type

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTCP

from rocketbroker import aio, deferred, threads
from rocketbroker.aio import Message, MessageQueue, SendResult


async def with_aio() -> None:
    """C{rocketbroker.aio}."""
    async with aio.connect(["a:9876", "b:9876"], patience=30, compress="zstd") as mq:
        assert_type(mq, aio.Session)
        result = await mq.send("T", "x", tag="A", keys="k", delay=timedelta(seconds=1))
        assert_type(result, SendResult)
        assert_type(await mq.send_batch([Message("T", b"x")]), list[SendResult])
        async for sent in mq.send_all([Message("T", b"x")], in_flight=8):
            assert_type(sent, SendResult)
        await mq.send_oneway("T", b"x", order_key="7", queue=result.queue)
        async with mq.consumer("T", group="G", tags=["A", "B"], ordered=True) as stream:
            first = await stream.next(timeout=1.0)
            assert_type(first, aio.ReceivedMessage | None)
            assert_type(stream.queues, list[MessageQueue])
            assert_type(stream.positions, Mapping[MessageQueue, int])
            async for message in stream:
                assert_type(message.text, str)
                assert_type(message.body, bytes)
                await message.ack()
                await message.retry(delay_level=1)
                await message.dead_letter()
        async with mq.lite_pull("G", queues=[result.queue], auto_commit=False) as lite:
            for polled in await lite.poll(1.0, 32):
                assert_type(polled.text, str)
            assert_type(await lite.offset_for_time(result.queue, 0.0), int)
            await lite.seek(result.queue, lite.position(result.queue))
            lite.pause(lite.queues)
            lite.resume(lite.queues)
            await lite.commit()

        @mq.check("T")
        async def decide(message: object) -> bool | None:
            return message is not None

        @mq.on("T", group="G", concurrency=2, start="earliest")
        async def handle(message: aio.ReceivedMessage) -> int:
            return message.attempt

        async with await mq.transaction("T", "x") as transaction:
            assert_type(transaction.result, SendResult)
        assert_type(await decide(None), bool | None)
        if first is not None:
            assert_type(await handle(first), int)
        await mq.run()
        mq.stop()


def with_threads() -> None:
    """C{rocketbroker.threads}."""
    with threads.connect("a:9876", group="P", seconds=5) as mq:
        assert_type(mq, threads.Session)
        result = mq.send("T", b"x", properties={"a": "1"}, at=1.5, timeout=2)
        assert_type(result, SendResult)
        assert_type(mq.send_batch([Message("T", b"x")]), list[SendResult])
        for sent in mq.send_all([Message("T", b"x")], patience=0):
            assert_type(sent, SendResult)
        mq.send_oneway("T", b"x")
        with mq.consumer("T", "G", sql="a > 5", consume_timeout=60) as stream:
            first = stream.next(timeout=1.0)
            assert_type(first, threads.ReceivedMessage | None)
            assert_type(stream.queues, list[MessageQueue])
            assert_type(stream.positions, Mapping[MessageQueue, int])
            for message in stream:
                assert_type(message.text, str)
                assert_type(message.body, bytes)
                message.ack()
                message.retry(delay_level=1)
                message.dead_letter()
        with mq.lite_pull("G", "T", start=0.0) as lite:
            for polled in lite.poll(1.0, 32):
                assert_type(polled.text, str)
            assert_type(lite.offset_for_time(result.queue, 0.0), int)
            lite.seek(result.queue, lite.position(result.queue))
            lite.pause(lite.queues)
            lite.resume(lite.queues)
            lite.commit()

        @mq.check("T")
        def decide(message: object) -> bool | None:
            return message is not None

        @mq.on("T", group="G", mode="pop", invisible_seconds=30)
        def handle(message: threads.ReceivedMessage) -> int:
            return message.attempt

        with mq.transaction("T", "x") as transaction:
            assert_type(transaction.result, SendResult)
        assert_type(decide(None), bool | None)
        if first is not None:
            assert_type(handle(first), int)
        mq.run()
        mq.stop()
        mq.close()


async def with_deferreds(reactor: IReactorTCP) -> None:
    """C{rocketbroker.deferred}."""
    async with deferred.connect(reactor, retry_unsafe=True) as mq:
        assert_type(mq, deferred.Session)
        sending = mq.send("T", "x", keys=["k", "l"], delay_level=3)
        assert_type(sending, Deferred[SendResult])
        result = await sending
        assert_type(await mq.send_batch([Message("T", b"x")]), list[SendResult])
        async for sent in mq.send_all([Message("T", b"x")], timeout=5):
            assert_type(sent, SendResult)
        await mq.send_oneway("T", b"x")
        async with mq.consumer("T", "G", broadcast=True) as stream:
            first = await stream.next(1.0)
            assert_type(first, deferred.ReceivedMessage | None)
            assert_type(stream.queues, list[MessageQueue])
            assert_type(stream.positions, Mapping[MessageQueue, int])
            async for message in stream:
                assert_type(message.text, str)
                assert_type(message.body, bytes)
                await message.ack()
                await message.retry(delay_level=1)
                await message.dead_letter()
        assert_type(mq.consumer("T", "G").start(), Deferred[deferred.MessageStream])
        async with mq.lite_pull("G", "T") as lite:
            for polled in await lite.poll(1.0, 32):
                assert_type(polled.text, str)
            assert_type(await lite.offset_for_time(result.queue, 0.0), int)
            await lite.seek(result.queue, lite.position(result.queue))
            lite.pause(lite.queues)
            lite.resume(lite.queues)
            await lite.commit()

        @mq.check("T")
        def decide(message: object) -> Deferred[bool | None]:
            return Deferred()

        @mq.on("T", group="G", prefetch=64)
        def handle(message: deferred.ReceivedMessage) -> Deferred[None]:
            return message.ack()

        async with await mq.transaction("T", "x") as transaction:
            assert_type(transaction.result, SendResult)
        assert_type(decide(None), Deferred[bool | None])
        if first is not None:
            assert_type(handle(first), Deferred[None])
        await mq.run()
        mq.stop()
        await mq.close()
