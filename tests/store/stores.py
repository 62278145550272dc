"""Stores of 64 KiB segments in memory, and messages for them."""

from __future__ import annotations

from collections.abc import Mapping

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records import batches
from rocketbroker.records.entries import SIZE
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.records.record import decode_all, encode
from rocketbroker.store.interfaces import PUT_OK, Draft, IQueue, IStore, Placed
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk

ROOT = "/store"
SEGMENT = 64 << 10
QUEUE_ENTRIES = 100
BATCH_UNITS = 10
STORE_HOST = bytes([10, 0, 0, 2]) + (10911).to_bytes(4, "big")
BORN_HOST = bytes([10, 0, 0, 1]) + (50000).to_bytes(4, "big")
BORN_HOST_V6 = bytes(range(16)) + (50000).to_bytes(4, "big")
START_MS = 1_700_000_000_000


class Wall:
    """A wall clock that a test sets."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def options(**changes: object) -> StoreOptions:
    """Small files."""
    given: dict[str, object] = {
        "store_path_root_dir": ROOT,
        "mapped_file_size_commit_log": SEGMENT,
        "mapped_file_size_consume_queue": QUEUE_ENTRIES * SIZE,
        "max_hash_slot_num": 100,
        "max_index_num": 1000,
        "mapper_file_size_batch_consume_queue": BATCH_UNITS * BATCH_SIZE,
        **changes,
    }
    return StoreOptions(**given)  # type: ignore[arg-type]  # tests name real ones


def make(
    disk: IFiles | None = None, wall: Wall | None = None, **changes: object
) -> Store:
    """A store that is not open yet."""
    return Store(
        disk if disk is not None else MemoryDisk(),
        options(**changes),
        wall if wall is not None else Wall(),
        STORE_HOST,
        memory_bytes=1 << 40,
    )


def opened(
    disk: IFiles | None = None, wall: Wall | None = None, **changes: object
) -> Store:
    """A store that is open."""
    store = make(disk, wall, **changes)
    store.open()
    return store


def with_batches(
    disk: IFiles | None = None, wall: Wall | None = None, **changes: object
) -> Store:
    """One that is open, in which topic B has batch queues, and no other has."""
    store = make(disk, wall, **changes)
    store.know_topics("B".__eq__)
    store.open()
    return store


def on_disk(root: str, **changes: object) -> Store:
    """One that is open, on the disk, with an index of the usual size."""
    sizes: dict[str, object] = {
        "max_hash_slot_num": StoreOptions().max_hash_slot_num,
        "max_index_num": StoreOptions().max_index_num,
        **changes,
    }
    return opened(Disk(), None, store_path_root_dir=root, **sizes)


def draft(
    queue: IQueue, body: bytes = b"body", tags: str = "", **changes: object
) -> Draft:
    """A message with the properties that a client sends."""
    properties = b"UNIQ_KEY\x01" + b"0" * 32 + b"\x02"
    if tags:
        properties = f"TAGS\x01{tags}\x02".encode() + properties
    given: dict[str, object] = {
        "properties": properties,
        "flag": 0,
        "sys_flag": 0,
        "born_ms": START_MS - 1,
        "born_host": BORN_HOST,
        "reconsume_times": 0,
        "tag_code": tag_code(tags) if tags else 0,
        "context": None,
        **changes,
    }
    return Draft(queue, body, **given)  # type: ignore[arg-type]  # as above


def batch(queue: IQueue, *bodies: bytes, **changes: object) -> Draft:
    """An inner batch as the broker makes one of what a client sends."""
    found = b"UNIQ_KEY\x01%b\x02INNER_NUM\x01%d\x02" % (b"1" * 32, len(bodies))
    given: dict[str, object] = {
        "sys_flag": 0xC0,
        "properties": b"",
        "parts": Placed(found, len(bodies)),
        **changes,
    }
    whole = batches.encode([(0, body, b"") for body in bodies])
    return draft(queue, whole, **given)  # type: ignore[arg-type]  # as above


def put_batches(store: IStore, queue: IQueue, *given: list[bytes]) -> list[Draft]:
    """Append inner batches, one by one, and dispatch them."""
    drafts = [batch(queue, *bodies) for bodies in given]
    for each in drafts:
        store.append([each])
        assert each.status == PUT_OK, each.status
    while store.dispatch(1000):
        pass
    return drafts


def unwrapped(store: IStore, queue: IQueue) -> list[tuple[int, bytes]]:
    """Offset and body of all messages in batches, as a consumer gets them."""
    found: list[tuple[int, bytes]] = []
    offset = queue.min_offset
    while offset < queue.max_offset:
        result = store.read(queue, offset, 32, 1 << 20, None)
        for message in decode_all(b"".join(result.records)):
            found += [(m.queue_offset, m.body) for m in batches.unwrap(message)]
        assert result.next_offset > offset, result.status
        offset = result.next_offset
    return found


def put(store: IStore, queue: IQueue, *bodies: bytes, tags: str = "") -> list[Draft]:
    """Append messages and dispatch them."""
    drafts = [draft(queue, body, tags) for body in bodies]
    store.append(drafts)
    assert all(each.status == PUT_OK for each in drafts), [d.status for d in drafts]
    while store.dispatch(1000):
        pass
    return drafts


def bodies(store: IStore, queue: IQueue) -> list[bytes]:
    """All bodies that a reader gets, from the first offset to the last."""
    return list(placed(store, queue).values())


def placed(store: IStore, queue: IQueue) -> dict[int, bytes]:
    """The same, each with the queue offset that its record says."""
    found: dict[int, bytes] = {}
    offset = queue.min_offset
    while offset < queue.max_offset:
        result = store.read(queue, offset, 32, 1 << 20, None)
        data = b"".join(result.records)
        assert len(data) == result.size
        at = 0
        while at < len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            v6 = 12 if data[at + 39] & 0x10 else 0
            start = at + 88 + v6
            length = int.from_bytes(data[start - 4 : start], "big")
            body = data[start : start + length]
            found[int.from_bytes(data[at + 20 : at + 28], "big")] = body
            at += size
        assert result.next_offset > offset
        offset = result.next_offset
    return found


#: Where in the log the records of L{joined} are.
START = 4096


def joined(*records: Mapping[str, object], step_ms: int = 0) -> bytes:
    """Records one after the other, where each says that it stands; the next in queue 0
    of T unless told otherwise.

    @param step_ms: how much later each was stored than the one before.
    """
    data = b""
    for number, changes in enumerate(records):
        words: dict[str, object] = {
            "topic": b"T",
            "body": b"body",
            "properties": b"TAGS\x01a\x02",
            "queue_id": 0,
            "queue_offset": number,
            "position": START + len(data),
            "born_ms": START_MS,
            "born_host": BORN_HOST,
            "store_ms": START_MS + number * step_ms,
            "store_host": STORE_HOST,
            **changes,
        }
        data += encode(**words)  # type: ignore[arg-type]  # tests name real ones
    return data
