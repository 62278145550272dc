# -*- test-case-name: tests.storetools.repair.test_run -*-
"""The repair of a damaged store, without a broker.

One walk finds the faults (L{rocketbroker.storetools.verify.log}). Records of the log
that cannot be read are replaced, in their place
(L{rocketbroker.storetools.repair.filler_records}). Queues with wrong entries, and the
index if it has become wrong, are moved away whole, and made again from the log by an
ordinary start and stop of the store, which also recovers after a crash. Then a second
walk shows the faults that are left.

Before anything is changed a copy is made (L{rocketbroker.storetools.repair.backup}). A
repair that was interrupted can be run again: the store then looks as after a crash.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Set
from typing import TypeAlias, final

import attrs

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFile, IFiles, IFileUsers
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.message_store import Store
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.recovery.clean_shutdown import NAME as ENDS
from rocketbroker.storetools.repair.backup import Backup, Done
from rocketbroker.storetools.repair.exclusive_lock import ExclusiveLock, log_folders
from rocketbroker.storetools.repair.file_sizes import batch_topics, fitted
from rocketbroker.storetools.repair.loss_report import LossReport, name_of
from rocketbroker.storetools.repair.plan import RepairPlan
from rocketbroker.storetools.repair.rebuild import LINE, RESERVE, Rebuild
from rocketbroker.storetools.repair.segment_sizes import SegmentSizes
from rocketbroker.storetools.verify.check import Check
from rocketbroker.storetools.verify.log import Verification, is_filler
from rocketbroker.storetools.verify.lookup import (
    queues_in,
    segment_at,
    written_from,
)
from rocketbroker.storetools.verify.report import Fault

#: Makes the directory for copies, when the first is needed.
Keeping: TypeAlias = Callable[[], Backup]


@final
class Repair:
    """One repair.

    @ivar faults: how many faults there were.
    @ivar left: how many are left.
    @ivar copies: the directory with everything as it was; empty if nothing was changed.
    """

    def __init__(
        self,
        files: IFiles,
        users: IFileUsers,
        options: StoreOptions,
        wall_ms: Callable[[], int],
        report: Callable[[Done], None],
        progress: Callable[[int], None],
        sized: Callable[[int], None],
        others: Callable[[Keeping | None], list[Done]],
    ) -> None:
        """
        @param users: the processes that use files now.
        @param options: paths and delay levels; sizes are those of the files, but that
            of the log's if it is not 0.
        @param progress: is given the bytes walked so far.
        @param sized: is given, before each walk, how long it is.
        @param others: repairs files that are not the store's; with None it only lists
            the steps.
        """
        self._files = files
        self._users = users
        self._root = options.store_path_root_dir
        self._options = options
        self._wall_ms = wall_ms
        self._report = report
        self._progress = progress
        self._sized = sized
        self._others = others
        self._copies: Backup | None = None
        self._has_other_index = False
        self._log_size = 0
        self.faults = 0
        self.left = 0

    @property
    def copies(self) -> str:
        """The directory with the copies; empty if nothing was changed."""
        return self._copies.folder if self._copies is not None else ""

    def run(self, dry: bool) -> None:
        """Repair, or with C{dry} only report what would be done.

        @raise StoreError: a process uses the store, or there is no room for the copies;
            nothing has changed then. Or the disk refused in the middle.
        """
        log = self._options.store_path_commit_log
        lock = ExclusiveLock(self._files, self._users, self._root, log)
        try:
            lock.take(dry)
            self._run(dry, lock)
        except OSError as error:
            raise StoreError(
                f"The repair of {self._root} stopped: {error.strerror}"
                + (f" ({error.filename}). " if error.filename else ". ")
                + self._changed()
            ) from error
        except StoreError as error:
            if not self.copies or self.copies in str(error):
                raise
            raise StoreError(f"{error} {self._changed()}") from error
        finally:
            if self._copies is not None:
                self._copies.close()
            lock.release()

    def _run(self, dry: bool, lock: ExclusiveLock) -> None:
        lengths = self._lengths()
        self._log_size = lengths.size
        first = self._first_changes(lengths, dry)
        if lengths.missing:
            self._leave(lengths)
            return
        walk, faults = self._walk()
        count = sum(not self._is_reported(each, first) for each in faults)
        self.faults += count
        if lengths.is_empty:
            # Without a log there is nothing to make queues from.
            self._leave_all(faults)
            return
        unclean = self._files.exists(os.path.join(self._root, "abort"))
        is_damaged = bool(faults)
        has_rest = walk.queues.unlisted or walk.tail
        if not (is_damaged or has_rest or unclean or first):
            return
        reader = self._reader()
        try:
            plan = RepairPlan(self._files, self._root, reader, faults, self._wall_ms())
            if walk.tail:
                plan.rest = walk.tail_position, walk.tail
            losses = LossReport(self._root, reader)
            changes = self._log_changes(plan, reader)
            again = self._again(plan, faults)
            if dry:
                self._report_all(
                    changes + losses.expected(plan.filling) + again.expected()
                )
                self.left += count
                return
            room = sum(len(data) + LINE for _, data in plan.filling.patches)
            room += again.size()
            self._check_room(room + plan.rest[1] + losses.size)
            options = self._sizes(reader)
            # To walk takes its time.
            lock.look()
            self._change(reader, plan)
            losses.keep(self._keeping())
            self._keeping().sync()
        finally:
            reader.close()
        self._report_all(changes)
        self._set_aside(again, is_damaged)
        # The store takes its lock itself.
        lock.release_root()
        batched = batch_topics(self._files, self._root)
        self._restart(options, batched | walk.queues.lost_batches)
        self._compare(losses)

    def _report_all(self, changes: list[Done]) -> None:
        for done in changes:
            self._report(done)

    def _reader(self) -> StoreReader:
        log = log_folders(self._root, self._options.store_path_commit_log)
        return StoreReader(self._files, self._root, ",".join(log))

    # Looking.

    def _walk(self) -> tuple[Verification, list[Fault]]:
        reader = self._reader()
        faults: list[Fault] = []
        try:
            options = self._options
            check = Check(
                reader,
                (options.max_hash_slot_num, options.max_index_num),
                faults.append,
                self._progress,
            )
            self._sized(check.expected_bytes())
            check.run()
            self._has_other_index = bool(check.index.unknown)
        finally:
            reader.close()
        return check.log, faults

    def _lengths(self) -> SegmentSizes:
        options = self._options
        return SegmentSizes(
            self._files,
            self._root,
            options.store_path_commit_log,
            options.mapped_file_size_commit_log,
        )

    def _is_reported(self, fault: Fault, paths: Set[str]) -> bool:
        """Whether a fault was reported before the walk, and not yet changed."""
        return fault.kind == "file" and fault.where in paths

    def _first_changes(self, lengths: SegmentSizes, dry: bool) -> set[str]:
        """Repair files that are not the store's; give each file of the log its right
        length, if none is missing.

        @return: the paths of those that are the store's.
        """
        others = self._others(None)
        is_changed = any(done.kind != "unrepaired" for done in others)
        if not dry and (is_changed or lengths.wrong):
            self._check_room(
                sum(done.length for done in others)
                + sum(abs(length - lengths.size) for _, _, length in lengths.wrong)
            )
            others = self._others(self._keeping) if is_changed else others
            if lengths.wrong:
                lengths.mend(self._keeping())
        ours = lengths.changes()
        for done in others + ours:
            self.faults += 1
            self.left += dry or done.kind == "unrepaired"
            self._report(done)
        return {done.where for done in ours}

    def _leave(self, lengths: SegmentSizes) -> None:
        """Report the missing files of the log; nothing is done about them."""
        for done in lengths.unrepaired():
            self.faults += 1
            self.left += 1
            self._report(done)

    def _leave_all(self, faults: list[Fault]) -> None:
        """Report faults that nothing is done about."""
        self.left += len(faults)
        for fault in faults:
            self._report(Done("unrepaired", fault.where, fault.position, 0, fault.text))

    def _batch_queues(self) -> set[tuple[str, int]]:
        return queues_in(self._files, os.path.join(self._root, BATCHES))

    # Reporting.

    def _log_changes(self, plan: RepairPlan, reader: StoreReader) -> list[Done]:
        """The changes in the log."""
        filling = plan.filling
        changes = []
        right = "numbers in its head were wrong and are set right"
        for kind, slots, text in (
            ("mended", filling.mended, right),
            ("emptied", filling.emptied, "its body is lost; an empty message is left"),
            ("discarded", filling.buried, "it is lost, and so is its place"),
        ):
            for slot in slots:
                where = name_of(slot)
                changes.append(Done(kind, where, slot.position, slot.size, text))
        for start, end in filling.sealed:
            path = self._path(reader, start)
            text = "its head or its properties were changed, and may be wrong; its "
            text += "body is right; its own CRC is made again"
            changes.append(Done("changed", path, start, end - start, text))
        for start, end in filling.dead:
            path = self._path(reader, start)
            kind, text = "discarded", f"no message can be made of bytes {start} to "
            text += str(end - 1)
            segment = segment_at(reader, start)
            if is_filler(segment.pread(8, start - segment.start)):
                kind, text = "changed", "the filler there had a wrong length"
            elif self._is_unwritten(reader, start, end):
                kind, text = "changed", "only zeros stand there; a filler says so now"
            changes.append(Done(kind, path, start, end - start, text))
        for start, size, why in plan.unread:
            path = self._path(reader, start)
            text = f"the disk refuses to read it ({why}); zeros take its place"
            changes.append(Done("discarded", path, start, size, text))
        end, behind = plan.rest
        if behind:
            path = self._path(reader, end)
            written = written_from(reader, end)
            text = "no message can be made of the bytes behind the last record"
            changes.append(Done("discarded", path, end, written, text))
        return changes

    def _is_unwritten(self, reader: StoreReader, start: int, end: int) -> bool:
        """Whether nothing stands at the end of a file that was there."""
        segment = segment_at(reader, start)
        return end == segment.end and not written_from(reader, start)

    def _path(self, reader: StoreReader, position: int) -> str:
        """The file of a position."""
        return segment_at(reader, position).path

    def _again(self, plan: RepairPlan, faults: list[Fault]) -> Rebuild:
        """The files that are made again."""
        filling = plan.filling
        damaged = set(plan.damaged)
        if filling.emptied or filling.dead:
            damaged |= self._batch_queues()
        again = Rebuild(self._files, self._root)
        again.queues(damaged)
        if faults and not self._has_other_index:
            again.index()
        if any(os.path.basename(each.where) == ENDS for each in faults):
            again.ends()
        return again

    # Changing.

    def _keeping(self) -> Backup:
        if self._copies is None:
            self._copies = Backup(self._files, self._root, self._wall_ms())
        return self._copies

    def _check_room(self, size: int) -> None:
        needed = RESERVE + size
        usable = self._files.usage(self._root)[1]
        if usable < needed:
            raise StoreError(
                f"The repair of {self._root} needs {needed >> 20} MiB for copies and "
                f"new files; {usable >> 20} MiB are free. {self._changed()}"
            )

    def _changed(self) -> str:
        if self._copies is None:
            return "Nothing was changed."
        return f"Copies of all that was changed until then are in {self.copies}."

    def _change(self, reader: StoreReader, plan: RepairPlan) -> None:
        """Write the bytes that replace lost records."""
        copies = self._keeping()
        opened: dict[str, IFile] = {}
        end, behind = plan.rest
        length = written_from(reader, end) if behind else 0
        zeros = [(position, bytes(size)) for position, size, _ in plan.unread]
        patches = zeros + plan.filling.patches
        changed = [(position, len(data)) for position, data in patches]
        try:
            for position, size in [*changed, (end, length)] if behind else changed:
                segment = segment_at(reader, position)
                if segment.path not in opened:
                    opened[segment.path] = self._files.open(segment.path)
                file = opened[segment.path]
                copies.keep(segment.path, file, position - segment.start, size)
            copies.sync()
            for position, data in patches:
                segment = segment_at(reader, position)
                opened[segment.path].pwrite(data, position - segment.start)
            for file in opened.values():
                file.datasync()
        finally:
            for file in opened.values():
                file.close()

    def _set_aside(self, again: Rebuild, rebuild: bool) -> None:
        """Let the store find that it crashed, and move away the files that are made
        again.

        In this order: where the power is lost in between, the next start makes the
        queues again, too, and does not take one that is away for a deleted one.
        """
        copies = self._keeping()
        ends = os.path.join(self._root, ENDS)
        if self._files.exists(ends):
            # The start uses and removes it.
            file = self._files.open_readonly(ends)
            copies.keep(ends, file, 0, file.size())
            copies.sync()
            file.close()
        abort = os.path.join(self._root, "abort")
        if rebuild and not self._files.exists(abort):
            self._files.open(abort, create=True).close()
            self._files.sync_dir(self._root)
        checkpoint = os.path.join(self._root, "checkpoint")
        if rebuild and self._files.exists(checkpoint):
            copies.move(checkpoint)
        self._report_all(again.move(copies))

    def _sizes(self, reader: StoreReader) -> StoreOptions:
        """The settings with the sizes that the files have."""
        # An index of another size than the settings say would be left alone, and one of
        # that size made beside it.
        has_index = self._options.message_index_enable and not self._has_other_index
        options = fitted(reader, self._options, self._log_size)
        return attrs.evolve(options, message_index_enable=has_index)

    def _restart(self, options: StoreOptions, batched: set[str]) -> None:
        """Start and stop the store, which makes the missing files again."""
        store = Store(self._files, options, self._wall_ms, bytes(8))
        store.know_topics(lambda topic: topic in batched)
        store.open()
        for sentence in store.report:
            self._report(Done("start", self._root, 0, 0, sentence))
        while store.dispatch(10_000):
            pass
        while store.build_index(10_000):
            pass
        store.close()

    def _compare(self, losses: LossReport) -> None:
        """Report the messages that are lost, and the faults that are left."""
        reader = self._reader()
        try:
            self._report_all(losses.found(reader))
        finally:
            reader.close()
        self._leave_all(self._walk()[1])
