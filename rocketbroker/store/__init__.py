# -*- test-case-name: tests.store -*-
"""The message store, in RocketMQ's files.

Its interface is in L{rocketbroker.store.interfaces}, and its class in
L{rocketbroker.store.message_store}. Its rooms, in the order in which a message meets
them:

  - L{commitlog}: the log of all messages.
  - L{sharing}: other processes that append to the same log.
  - L{dispatch}: adds records of the log to the queues and the index.
  - L{consumequeue}: the queues.
  - L{index}: finds messages by their keys.
  - L{reading}: reads messages for pulls and queries.
  - L{timerwheel}: which message for later is due when.
  - L{retention}: removes old files.
  - L{recovery}: recovers the files after a stop or a crash.
  - L{reader}: a directory opened for reading only.

Beside them:

  - L{assembly}: the parts of a store, put together.
  - L{reads}: what a read is given and gives.
  - L{shared_positions}: the numbers that processes share.
  - L{append_lock}: the lock of appends, as all parts see it.
  - L{store_lock}: the lock of the directory, and the mark of a
    crash.
  - L{running_flags}: what the store can do now, as operators read
    it.
  - L{disk_usage}: how full its disks are.
  - L{file_names}: names of the files of log and queues.
  - L{flush_threshold}: how many pages must wait before a flush.
  - L{corruption_log}: corrupt records that were found.
  - L{quarantine}: files that are taken out of a store, and kept.
  - L{plugins}: plug-ins around the store, and followers of its log.
  - L{dispatched_record}: a record as followers see it.
  - L{raw_log}: the log as bytes, for replication.
  - L{log_tail}: the records of the log in order, for followers.
"""
