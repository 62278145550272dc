# -*- test-case-name: tests.storetools.verify -*-
"""Every record, queue entry and index entry of a directory checked.

- L{check}: all of it. L{report}: the faults and remarks that it finds.
- L{log}: every record. L{queues}: every queue entry, by L{queue_match} (with
  L{tagcodes}) and L{batch_match}. L{index}: the index.
- L{files}: the files by themselves; L{rawqueues}: what stands in queues, whether it
  leads anywhere; L{logbegin}: whether the first files were lost, or removed by age.
- L{lookup}: where things are in the directory.
"""
