"""An example of a plug-in: a line for each message that the broker has stored.

Put the directory that has C{twisted/plugins/rocketbroker_audit.py} in it on Python's
path, and say in the broker's settings who is to follow::

    PYTHONPATH=/opt/rocketbroker/etc/plugins twistd rocketbroker -c broker.conf

    dispatchFollowers = audit
    auditFile = /var/log/rocketbroker/audit.jsonl

Each line is JSON; without C{auditFile} the file is C{plugins/audit/audit.jsonl} in the
store::

    {"end": 215, "stored": 1700000000000, "topic": "Orders", "queue": 3, "offset": 0,
     "size": 215, "tag": "paid", "keys": "4711"}

It keeps its own position: the last line says where it goes on, and a line that a crash
has cut off is taken away first. So each message has one line, whatever happens. A
plug-in that may see a few messages twice after a crash needs none of this: it gives
C{remembered} back from C{start} (0 if it is None).

What the methods promise stands in L{rocketbroker.store.plugins}. A follower runs in a
thread of its own, behind the broker; what it raises, such as for a full disk, is logged
and tried again, and the broker goes on meanwhile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from io import FileIO

from twisted.plugin import IPlugin
from zope.interface import implementer

from rocketbroker.store.dispatched_record import DispatchedRecord
from rocketbroker.store.plugins import IFollowerPlugin, IRecordFollower


@implementer(IRecordFollower)
class Audit:
    """Writes the lines."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: FileIO | None = None

    def start(self, remembered: int | None, end: int) -> int:
        """Go on behind the last whole line, whatever the broker remembers."""
        if self._file is None:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._file = FileIO(self._path, "a+")
        position, whole = last_line(self._file)
        self._file.truncate(whole)
        return position

    def follow(self, records: Sequence[DispatchedRecord]) -> None:
        """One line each; on the disk when this returns, or none of them."""
        assert self._file is not None
        before = self._file.seek(0, os.SEEK_END)
        lines = b"".join(line_of(record) for record in records)
        try:
            if self._file.write(lines) != len(lines):
                raise OSError(f"no room in {self._path}")
            os.fdatasync(self._file.fileno())
        except OSError:
            self._file.truncate(before)
            raise

    def stop(self) -> None:
        """The broker stops."""
        assert self._file is not None
        self._file.close()


def line_of(record: DispatchedRecord) -> bytes:
    """The line of a message."""
    properties = record.properties
    line = {
        "end": record.end,
        "stored": record.store_ms,
        "topic": record.topic,
        "queue": record.queue_id,
        "offset": record.queue_offset,
        "size": record.size,
        "tag": properties.get("TAGS"),
        "keys": properties.get("KEYS"),
    }
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def last_line(file: FileIO) -> tuple[int, int]:
    """What the last whole line says, and where it ends; zeros if there is none."""
    size = file.seek(0, os.SEEK_END)
    tail = min(size, 1 << 20)
    file.seek(size - tail)
    whole = file.read(tail)
    whole = whole[: whole.rfind(b"\n") + 1]
    if not whole:
        return 0, 0
    return json.loads(whole.splitlines()[-1])["end"], size - tail + len(whole)


@implementer(IPlugin, IFollowerPlugin)
class AuditPlugin:
    """What the broker finds."""

    name = "audit"

    def follower(
        self,
        folder: str,
        settings: Mapping[str, str],
        record_at: Callable[[int], bytes | None],
    ) -> Audit:
        """A follower that writes where the settings say."""
        return Audit(settings.get("auditFile") or os.path.join(folder, "audit.jsonl"))


audit = AuditPlugin()
