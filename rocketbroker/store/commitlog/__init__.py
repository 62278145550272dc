# -*- test-case-name: tests.store.commitlog -*-
"""The commit log: the files that hold all messages, and their appending and reading.

The modules:

  - L{writer}: append: reserve, fill, publish. L{encoder}: drafts to records;
    L{batch_records}: drafts of several messages; L{record_crc}: records with a CRC of
    their own. L{write_backoff}: how long appends are refused after an error.
  - L{segments}: the files of the log; L{segment}: one of them; L{missing_file}: in
    place of one. L{badblocks}: blocks that the disk cannot read. L{preallocation}:
    blocks, segments and pages ahead of the writer.
  - L{raw_log}: the log as bytes, which masters send and slaves append; L{received}: the
    records in them.
  - L{flush}: flushing to the disk. L{checkpoint}: the file with the time and the
    position up to which all is on the disk.
  - L{scanner}: from record to record, with all checks; L{ordinary}: many ordinary
    records at once; L{resync}: the next whole record behind one that cannot be read.
  - L{loading}: opening the files at a start. L{truncate}: discarding bytes behind the
    end.
"""
