# -*- test-case-name: tests.store.commitlog -*-
"""The commit log: records appended, flushed, scanned, cut.

- L{writer}: append: reserve, fill, publish. L{encoder}: drafts to records;
  L{batch_records}: drafts of several messages; L{record_crc}: records with a CRC of
  their own. L{write_backoff}: how long appends are refused after an error.
- L{segments}: the files of the log. L{badblocks}: reading them where the disk cannot
  read all. L{preallocation}: blocks, segments and pages ahead of the writer.
- L{flush}: how far the log is on the disk. L{checkpoint}: up to which time, and where,
  all is on the disk.
- L{scanner}: from record to record, with all checks; L{ordinary}: many ordinary records
  at once; L{resync}: whether the log goes on behind what cannot be read.
- L{loading}: the files, as a start finds them. L{truncate}: what stands behind the end.
"""
