# -*- test-case-name: tests.storetools.repair -*-
"""Repair of a damaged store directory.

The modules:

  - L{run}: all steps. L{exclusive_lock}: the locks that a repair takes.
  - L{segment_sizes}: the right length of the log's files; L{file_sizes}: of all others.
  - L{plan}: the decision what is written where no record can be read.
    L{filler_records}: the records written there.
  - L{loss_report}: the messages that are discarded.
  - L{backup}: copies of everything that is changed. L{rebuild}: files that are moved
    away, to be made again.
"""
