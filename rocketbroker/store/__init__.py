# -*- test-case-name: tests.store -*-
"""The message store: commit log, consume queues, recovery.

What the services see is in L{rocketbroker.store.interfaces};
L{rocketbroker.store.store} offers it. From the outside in:

- L{rocketbroker.store.parts}: what the store is made of.
- L{rocketbroker.store.ownership}: who uses it, and how it was left.
- L{rocketbroker.store.flags}: what it can do at the moment, as operators read it.
- L{rocketbroker.store.commitlog}: append: reserve, fill, publish.
- L{rocketbroker.store.flushing}: how far the log may be read, and is on the disk.
- L{rocketbroker.store.bufferpool}: the buffers of the transient store pool, counted.
- L{rocketbroker.store.room}: blocks, segments and pages ahead of the writer.
- L{rocketbroker.store.pages}: whether a flush is worth it.
- L{rocketbroker.store.diskspace}: how full its disks are.
- L{rocketbroker.store.cleaning}: what is removed, when, and in which order.
- L{rocketbroker.store.refusal}: why the log takes nothing, and until when.
- L{rocketbroker.store.encoding}: drafts to records, for the append.
- L{rocketbroker.store.sealing}: records with a CRC of their own.
- L{rocketbroker.store.placing}: drafts of several messages, and such that say where
  they stand.
- L{rocketbroker.store.dispatching}: from the log into the queues.
- L{rocketbroker.store.reading}: the messages of a queue, for pulls.
- L{rocketbroker.store.wanted}: the same by what their properties say.
- L{rocketbroker.store.rot}: the same with all checks, for what may be rotten.
- L{rocketbroker.store.batchreading}: the same of batches.
- L{rocketbroker.store.plugins}: who may stand before it or walk behind it.
- L{rocketbroker.store.following}: that walk.
- L{rocketbroker.store.timesearch}: single records; the offset of a time.
- L{rocketbroker.store.loading}: the files of the log, as a start finds them.
- L{rocketbroker.store.recovery}: from what a stop has left to a store that can go on.
- L{rocketbroker.store.replaying}: many records at once from the log into their queues.
- L{rocketbroker.store.ordinary}: many ordinary records at once.
- L{rocketbroker.store.scanning}: the log from record to record, with all checks.
- L{rocketbroker.store.ends}: where the queues ended when it was stopped.
- L{rocketbroker.store.lookahead}: whether it goes on behind what cannot be read.
- L{rocketbroker.store.misplaced}: records that say another place in their queue.
- L{rocketbroker.store.consumequeue}: one queue: its entries, first and last offset.
- L{rocketbroker.store.batchqueue}: the units of one that holds batches.
- L{rocketbroker.store.extension}: what does not fit into the entries of a queue.
- L{rocketbroker.store.queuefiles}: the files of a queue.
- L{rocketbroker.store.queueloading}: the same, as a start finds them.
- L{rocketbroker.store.index}: messages by their keys.
- L{rocketbroker.store.indexfile}: one file of it.
- L{rocketbroker.store.indexrows}: messages on their way into it.
- L{rocketbroker.store.indexkeys}: under which hashes a message stands in it.
- L{rocketbroker.store.delays}: the tag codes of delayed messages.
- L{rocketbroker.store.queues}: all queues.
- L{rocketbroker.store.ordered}: looking for a place by halves.
- L{rocketbroker.store.debt}: what their files had no room for.
- L{rocketbroker.store.segments}: the files of the log.
- L{rocketbroker.store.checkpoint}: up to which time all is on the disk.
- L{rocketbroker.store.words}: the numbers that processes share.
- L{rocketbroker.store.lease}: who may append now.
- L{rocketbroker.store.reader}: a directory opened for reading only, for exports.
- L{rocketbroker.store.unreadable}: what its disk refuses to read.
- L{rocketbroker.store.logfiles}: the files of its log, whatever has become of them.
- L{rocketbroker.store.queuereader}: one of its queues.
- L{rocketbroker.store.filerow}: the files of one of these.
- L{rocketbroker.store.batchfiles}: one of its batch queues.
- L{rocketbroker.store.inspection}: what such a directory holds, for operators.
- L{rocketbroker.store.check}: all of it checked.
- L{rocketbroker.store.verification}: every record and every entry checked.
- L{rocketbroker.store.queueverification}: that of the entries.
- L{rocketbroker.store.fileverification}: that of the files by themselves.
- L{rocketbroker.store.faults}: what it finds.
- L{rocketbroker.store.repair}: a damaged directory made good, as far as that can be.
- L{rocketbroker.store.claim}: which locks a repair takes.
- L{rocketbroker.store.lengths}: how long the files of the log should be for it.
- L{rocketbroker.store.rawqueues}: what stands in queues, whether it leads anywhere.
- L{rocketbroker.store.replacing}: what it writes where no record can be read.
- L{rocketbroker.store.lostrecords}: what takes the place of lost records.
- L{rocketbroker.store.copies}: what a repair changes, kept as it was.
- L{rocketbroker.store.indexverification}: the index checked.
- L{rocketbroker.store.locating}: where things are in it.
- L{rocketbroker.store.matching}: the entries of a queue against its records.
- L{rocketbroker.store.batchmatching}: the units of a batch queue against its batches.
- L{rocketbroker.store.tagcodes}: what stands in entries against tags.
"""
