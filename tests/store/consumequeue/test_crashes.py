"""Machines that stop in the middle of work on queues of all kinds: each is afterwards
what the log says."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY
from rocketbroker.records.hashing import tag_code
from rocketbroker.store.interfaces import PUT_OK
from rocketbroker.store.message_store import Store
from tests.store.consumequeue.mixed import contents, start
from tests.store.lmq import spread
from tests.store.scripts import Script
from tests.store.stores import batch, draft

TAGS = ("", "A", "BB")

#: The numbers under which a script notes what each queue got: an ordinary one, a batch
#: queue, a light one.
PLAIN, BATCHES, LIGHT = range(3)


class MixedScript(Script):
    """Random work on queues of all kinds."""

    def append(self, store: Store) -> None:
        """Append one message or batch."""
        self.count += 1
        body = b"%d" % self.count
        queue, light = store.queue("T", 0), store.queue("%LMQ%a", 0)
        kind = self.luck.randrange(3)
        sent = [(PLAIN, body)]
        if kind == BATCHES:
            parts = [
                b"%d.%d" % (self.count, n) for n in range(self.luck.randrange(1, 9))
            ]
            way = self.luck.randrange(3)
            each = batch(store.queue("B", 0), *parts)
            if way == 0:
                # Each message is a unit of its own.
                outer = [(0, part, b"", 0) for part in parts]
                each = draft(store.queue("B", 0), parts=outer)
            elif way == 1:
                parts = [body]
                each = draft(store.queue("B", 0), body)
            sent = [(BATCHES, part) for part in parts]
        elif kind == LIGHT:
            each = spread(queue, body, light)
            sent.append((LIGHT, body))
        else:
            each = draft(queue, body, self.luck.choice(TAGS))
        store.append([each])
        assert each.status == PUT_OK
        for number, part in sent:
            self.sent[number].append(part)

    def open(self) -> Store:
        """Start again."""
        return start(self.disk, self.wall)


class MixedCrashTests(SynchronousTestCase):
    """Many crashes."""

    def check(self, script: MixedScript, store: Store) -> None:
        """What was flushed is there, what else is there has the offset that it was
        given, and the entries of all lead to what they should."""
        for number, (queue, there) in enumerate(contents(store)):
            sent = script.sent[number]
            end = queue.next_offset
            self.assertTrue(script.safe[number] <= end <= len(sent))
            for offset, body in enumerate(sent[:end]):
                if offset in there or offset < script.safe[number]:
                    self.assertEqual(there.get(offset), body)
            self.assertTrue(max(there, default=-1) < end)
            script.sent[number] = [there.get(offset) for offset in range(end)]
            script.safe[number] = end
        self.check_codes(store)

    def check_codes(self, store: Store) -> None:
        """No unit of an extension says a tag that no message has."""
        queue = store.queue("T", 0)
        extension = queue.extension
        assert extension is not None
        at = 0
        while at < queue.max_offset:
            data = queue.read(at, queue.max_offset - at)
            for _, _, code in ENTRY.iter_unpack(data):
                found = extension.tag_code(code)
                self.assertIn(found, [tag_code(tags) if tags else 0 for tags in TAGS])
            at += len(data) // ENTRY.size

    def test_crashes(self) -> None:
        """However often it happens, and whatever of unsynced blocks survives."""
        for seed in range(40):
            script = MixedScript(seed)
            store = script.open()
            for _ in range(4):
                for _ in range(script.luck.randrange(40)):
                    script.work(store)
                store = script.crash()
                self.check(script, store)

    def test_crashThenStop(self) -> None:
        """A clean stop after a crash is a clean stop."""
        for seed in range(10):
            script = MixedScript(500 + seed)
            store = script.open()
            for _ in range(25):
                script.work(store)
            store = script.crash()
            self.check(script, store)
            for _ in range(25):
                script.work(store)
            store.close()
            store = script.open()
            self.assertEqual(store.recovered.records, 0)
            self.assertEqual(store.report, [])
            self.check(script, store)
