# -*- test-case-name: tests.store.consumequeue -*-
"""Consume queues: the entries that lead from a queue offset to a record.

The modules:

  - L{table}: all queues. L{queue}: one queue: its entries, first and last offset.
  - L{batch_queue}: the entries of a queue that holds batches. L{extension}: tag codes
    and filter bit maps beside the entries of a queue.
  - L{files}: the files of a queue; L{loading}: opening them at a start.
  - L{deferred_writes}: writes that wait for room on the disk.
"""
