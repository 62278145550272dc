"""The arithmetic of static topics."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SystemFailure
from rocketbroker.routing.static_topics import (
    LAST,
    accepted,
    check,
    find,
    following,
    mock_broker_name,
)
from rocketbroker.wire.bodies.mappings import (
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
)
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.fields import object_of


def item(gen: int, logic_offset: int, **more: int) -> LogicQueueMappingItem:
    """An item on broker b0, b1 and so on."""
    values = {"queue_id": gen, **more}
    return LogicQueueMappingItem(
        gen=gen, logic_offset=logic_offset, bname=f"b{gen}", **values
    )


CLOSED = item(0, 0, end_offset=40)
OPEN = item(1, 100, start_offset=20)
NEXT = item(2, -1)
ROW = (CLOSED, OPEN, NEXT)


def detail(**more: object) -> TopicQueueMappingDetail:
    """What broker b1 knows of topic T."""
    values: dict[str, object] = {"epoch": 5, "hosted_queues": {0: (CLOSED, OPEN)}}
    values |= {"topic": "T", "bname": "b1", "total_queues": 1, **more}
    return TopicQueueMappingDetail(**values)  # type: ignore[arg-type]


class ItemTests(SynchronousTestCase):
    """Offsets of items, and the item of an offset."""

    def test_offsets(self) -> None:
        """Physical offsets to logical ones and back."""
        self.assertEqual([OPEN.logical(at) for at in (0, 20, 25)], [100, 100, 105])
        self.assertEqual(OPEN.physical(105), 25)
        self.assertEqual((OPEN.delta, OPEN.top, OPEN.is_end_decided), (80, 100, False))
        self.assertEqual((CLOSED.top, CLOSED.is_end_decided), (40, True))
        self.assertEqual(CLOSED.logical(50), 50)
        self.assertEqual(CLOSED.logical_within(50), 40)
        self.assertEqual(NEXT.logical_within(50), -1)

    def test_find(self) -> None:
        """The item of an offset: of those whose place is known, the last that begins
        there or before; the first for an earlier one."""
        found = [find(ROW, at).gen for at in (-1, 0, 99, 100, LAST)]
        self.assertEqual(found, [0, 0, 0, 1, 1])
        with self.assertRaises(SystemFailure):
            find((NEXT,), 0)

    def test_following(self) -> None:
        """The item behind one, if its place is known."""
        self.assertEqual(following(ROW, CLOSED), OPEN)
        self.assertIsNone(following(ROW, OPEN))

    def test_mockName(self) -> None:
        """The broker that clients know."""
        self.assertEqual(mock_broker_name("__global__"), "__syslo__global__")
        self.assertEqual(mock_broker_name("s"), "__syslo__s")


class AcceptedTests(SynchronousTestCase):
    """Which mapping a broker takes."""

    def test_rows(self) -> None:
        """A row whose items do not follow one another is refused."""
        check(ROW)
        check(())
        for row in (
            (attrs.evolve(CLOSED, start_offset=-1),),
            (attrs.evolve(CLOSED, end_offset=3, start_offset=4),),
            (NEXT, item(3, 200)),
            (CLOSED, item(0, 100)),
            (item(0, 100), item(1, 100)),
            (item(0, 0, end_offset=100), item(1, 100)),
        ):
            with self.assertRaises(SystemFailure):
                check(row)

    def test_first(self) -> None:
        """A broker without a mapping takes any."""
        self.assertEqual(accepted(None, detail(epoch=-1), False), detail(epoch=-1))

    def test_newer(self) -> None:
        """One of a higher epoch is taken; queues that it lacks stay."""
        newer = detail(epoch=6, hosted_queues={1: (item(0, 0),)})
        taken = accepted(detail(), newer, False)
        self.assertEqual(list(taken.hosted_queues), [0, 1])
        self.assertEqual(taken.epoch, 6)

    def test_refused(self) -> None:
        """One that is older, of another scope, or says else at the same epoch is not
        taken, but by force."""
        for new in (
            detail(epoch=4),
            detail(scope="s"),
            detail(hosted_queues={}),
            detail(hosted_queues={0: ()}),
            detail(hosted_queues={0: ROW}),
        ):
            with self.assertRaises(SystemFailure):
                accepted(detail(), new, False)
            self.assertEqual(accepted(detail(), new, True).epoch, new.epoch)

    def test_same(self) -> None:
        """The same again is taken, also with the place of the leader decided."""
        undecided = detail(
            hosted_queues={0: (CLOSED, attrs.evolve(OPEN, logic_offset=-1))}
        )
        self.assertEqual(accepted(undecided, detail(), False), detail())


class BodyTests(SynchronousTestCase):
    """The bodies, as RocketMQ writes them."""

    def test_json(self) -> None:
        """There and back."""
        text = (
            b'{"bname":"b1","currIdMap":{},"dirty":false,"epoch":5,"hostedQueues":{0:['
            b'{"bname":"b0","endOffset":40,"gen":0,"logicOffset":0,"queueId":0,'
            b'"startOffset":0,"timeOfEnd":-1,"timeOfStart":-1},'
            b'{"bname":"b1","endOffset":-1,"gen":1,"logicOffset":100,"queueId":1,'
            b'"startOffset":20,"timeOfEnd":-1,"timeOfStart":-1}]},'
            b'"scope":"__global__","topic":"T","totalQueues":1}'
        )
        self.assertEqual(dumps(detail()), text)
        self.assertEqual(object_of(text, TopicQueueMappingDetail.from_json), detail())

    def test_info(self) -> None:
        """Name servers are told the queues that are led here."""
        other = attrs.evolve(OPEN, bname="b9")
        found = detail(hosted_queues={0: (CLOSED, OPEN), 1: (CLOSED, other), 2: ()})
        self.assertEqual(found.info.curr_id_map, {0: 1})
        self.assertEqual((found.info.epoch, found.info.total_queues), (5, 1))
