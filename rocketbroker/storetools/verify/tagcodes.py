# -*- test-case-name: tests.storetools.verify.test_queues -*-
"""Whether the tag code of a queue's entry is what its record says.

It is the hash of the tags, or with delayed messages the time of delivery, which has to
be behind the store time; how far is a setting. Or it is the address of a unit in the
queue's extension, in which the same stands, and the store time beside it.

The store sheet, sections 7.2 and 8.
"""

from __future__ import annotations

from typing import final

from rocketbroker.errors import StoreError
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.records.queueunits import EXTENSION_HEAD, decode_extension
from rocketbroker.store.consumequeue.extension import FOLDER, NOWHERE, is_address
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.reader.file_sequence import FileSequence

#: What is added to a position to make it an address.
_ZERO = -(1 << 63)


@final
class TagCodes:
    """Those of one queue.

    @ivar are_plain: whether they are what stands in the records.
    """

    def __init__(self, reader: StoreReader, topic: str, queue_id: int) -> None:
        self._is_delayed = topic == SCHEDULE_TOPIC
        self._units: FileSequence | None = None
        if queue_id in reader.queues(topic, FOLDER):
            self._units = reader.row(FOLDER, topic, queue_id, 1)
        self._is_refused = reader.is_refused(FOLDER, topic, queue_id)
        has_units = self._units is not None or self._is_refused
        self.are_plain = not has_units and not self._is_delayed

    def wrong(self, code: int, expected: int, store_ms: int) -> tuple[str, int, str]:
        """What is wrong with a code.

        @param code: what stands in the entry.
        @param expected: the hash of the record's tags.
        @param store_ms: the record's store time.
        @return: what, in words, empty if nothing is; then where: the position in the
            extension and its file, or 0 and nothing if it is the entry that is wrong.
        """
        if not is_address(code):
            return self._differs(code, expected, store_ms), 0, ""
        if code == NOWHERE or self._is_refused:
            # There never was a unit, or it is another's; or that nobody can look is
            # told by itself.
            return "", 0, ""
        position = code - _ZERO
        units = self._units
        path = units.path_of(position) if units is not None else ""
        if units is None or not path:
            return f"its tag code is {code}, where the extension has no file", 0, ""
        try:
            head = units.read(position, EXTENSION_HEAD)
            size = int.from_bytes(head[:2], "big", signed=True)
            unit = decode_extension(units.read(position, max(size, EXTENSION_HEAD)))
        except StoreError:
            # A broker that cleans its store has removed it.
            return "", 0, ""
        if unit is None:
            return "no unit of the extension stands there", position, path
        why = self._differs(unit.tag_code, expected, store_ms)
        if not why and unit.store_ms != store_ms:
            why = f"its store time is {unit.store_ms}, the record's is {store_ms}"
        return why, position, path

    def _differs(self, code: int, expected: int, store_ms: int) -> str:
        if code == expected or (self._is_delayed and code >= store_ms):
            return ""
        if self._is_delayed:
            return f"it is delivered at {code}, and was stored at {store_ms}"
        return f"its tag code is {code}, the record's is {expected}"
