# -*- test-case-name: tests.broker.statictopics.test_mapped_pulls -*-
"""A pull of a logical queue, as one of a physical queue, and its answer as the logical
queue's.

The clients of 5.x add C{offsetDelta} to the offsets of the messages that they get. A
reader that is at the end of an item is sent to the next one; as long as it is not known
where that begins, there is nothing to read.

C{docs/facts/broker.md} 23.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.broker.pull.pull_messages import (
    NOT_NEEDED,
)
from rocketbroker.routing.static_topics import Items, find, following
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import (
    COMMIT,
    SUSPEND,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
)

#: Answers that have offsets; all others are errors.
WITH_OFFSETS: Final = frozenset(
    (
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    )
)


@final
class MappedPull:
    """One pull of a logical queue.

    @ivar item: the physical queue that it reads.
    @ivar ext: the fields of the pull of that.
    """

    def __init__(self, items: Items, ext: dict[str, str], own_name: str) -> None:
        """
        @param items: of the logical queue, which this broker leads.
        @param ext: the fields of the request.
        @param own_name: this broker's.
        @raise SystemFailure: no item's place is known, or a number is none.
        """
        header = PullMessageRequestHeader.complete(ext, NOT_NEEDED)
        self._items = items
        item = self.item = find(items, header.queue_offset)
        self._offset = item.physical(header.queue_offset)
        most = header.max_msg_nums
        if item.is_end_decided:
            most = min(most, item.end_offset - item.start_offset)
        flag = header.sys_flag
        if item is not items[-1] or item.bname != own_name:
            # Nothing comes into it any more that a reader could wait for.
            flag &= ~SUSPEND
        commit = header.commit_offset
        if item.bname != own_name or find(items, commit) is not item:
            # It comes by itself (15), and to the right broker, soon after.
            flag &= ~COMMIT
        else:
            commit = item.physical(commit)
        self.ext = {
            **ext,
            "queueId": str(item.queue_id),
            "queueOffset": str(self._offset),
            "maxMsgNums": str(most),
            "sysFlag": str(flag),
            "commitOffset": str(commit),
        }

    def answer(self, answer: Command) -> Command:
        """The answer to the logical queue's reader.

        @param answer: of the physical queue.
        """
        if answer.code not in WITH_OFFSETS:
            return answer
        header = PullMessageResponseHeader.from_ext(answer.ext)
        item, code = self.item, answer.code
        after, least, most = (
            header.next_begin_offset,
            header.min_offset,
            header.max_offset,
        )
        if code != ResponseCode.SUCCESS:
            code, after = self._corrected(code, after, least, most)
            behind = following(self._items, item)
            if self._offset >= most and item is not self._items[-1]:
                if behind is None:
                    # It is not decided yet where the next one begins.
                    code = ResponseCode.PULL_NOT_FOUND
                else:
                    code = ResponseCode.PULL_RETRY_IMMEDIATELY
                    item = behind
                    after = least = most = item.start_offset
        if item.is_end_decided:
            after = min(after, item.end_offset)
        header.next_begin_offset = item.logical(after)
        header.min_offset = item.logical(max(item.start_offset, least))
        header.max_offset = max(item.logical(most), self._items[-1].top)
        header.offset_delta = item.delta
        remark = answer.remark if answer.code == ResponseCode.SUCCESS else None
        return Command(code, header.to_ext(), answer.body, remark=remark)

    def _corrected(
        self, code: int, after: int, least: int, most: int
    ) -> tuple[int, int]:
        """The code of an answer without messages, and where its reader goes on.

        A reader behind the end of a queue that has no other item finds nothing, as in
        RocketMQ: it is not sent back.
        """
        is_first = self.item is find(self._items, 0)
        if self._offset < least:
            if is_first:
                return ResponseCode.PULL_OFFSET_MOVED, least
            return ResponseCode.PULL_RETRY_IMMEDIATELY, least
        if self._offset > most and code == ResponseCode.PULL_OFFSET_MOVED:
            return (ResponseCode.PULL_NOT_FOUND if is_first else code), most
        return code, after
