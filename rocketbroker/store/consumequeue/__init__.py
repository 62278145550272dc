# -*- test-case-name: tests.store.consumequeue -*-
"""Consume queues: the entries that lead from a queue offset to a record.

- L{table}: all queues. L{queue}: one queue: its entries, first and last offset.
- L{batch_queue}: the entries of a queue that holds batches. L{extension}: what does not
  fit into the entries of a queue.
- L{files}: the files of a queue; L{loading}: the same, as a start finds them.
- L{deferred_writes}: what their files had no room for.
"""
