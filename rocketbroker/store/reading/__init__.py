# -*- test-case-name: tests.store.reading -*-
"""Reading: the messages of a queue, and single records.

The modules:

  - L{pull}: many messages of a queue; L{batch_pull}: the same of batches.
  - L{property_filter}: the same, filtered by their properties.
  - L{checked_read}: the same with all checks, for records that may be corrupt.
  - L{time_lookup}: single records; the offset of a time.
"""
