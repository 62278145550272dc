# -*- test-case-name: tests.records -*-
"""Messages and their records, in memory and as bytes.

Pure: bytes and values in, bytes and values out; time and chance are arguments.

  - L{record}: one record of the commit log, which is also
    what a pull brings: encode, decode, check.
  - L{record_head}: its fields before the body.
  - L{checking}: whether a stored record is whole.
  - L{batches}: several messages in one request, and
    several in one record.
  - L{properties}: names and values, as one string.
  - L{outgoing}: a message to send.
  - L{sysflags}: the bits of the system flag.
  - L{compression}: bodies made small and large.
  - L{hosts}: an address and a port, as a record has them.
  - L{ids}: offset ids and unique keys.
  - L{hashing}: Java's hash of a string: tags, index keys.
  - L{bulkhashing}: the same of many keys at once.
  - L{entries}: the 20 bytes of a consume queue's entry.
  - L{tag_codes}: the tag codes that a reader wants.
  - L{queueunits}: the units of batch queues and
    extensions.
  - L{check_points}: check points of POP, and their
    acknowledgements; L{open_check_points}:
    which are open; L{receipt_handle}: what
    consumers know of them.
  - L{recall_handle}: what takes back a message that
    waits for its time.
  - L{names}: names of topics and groups, and which are
    allowed.
  - L{malformed}: the one error that decoding raises.
"""
