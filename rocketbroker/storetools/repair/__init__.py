# -*- test-case-name: tests.storetools.repair -*-
"""A damaged directory made good, as far as that can be.

- L{run}: all of it. L{exclusive_lock}: the locks that it takes. L{plan}: what it writes
  where no record can be read: L{filler_records}.
- L{loss_report}: which messages it gives up. L{segment_sizes}: how long the files of
  the log should be.
- L{backup}: what it changes, kept as it was. L{rebuild}: what it moves away, to be made
  again.
"""
