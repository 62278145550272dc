# -*- test-case-name: tests.store -*-
"""The message store, in RocketMQ's files.

Its interface is in L{rocketbroker.store.interfaces}, and its class in
L{rocketbroker.store.message_store}. Its rooms, in the order in which a message meets
them:

  - L{rocketbroker.store.commitlog}: the log of all messages.
  - L{rocketbroker.store.sharing}: other processes that append to the same log.
  - L{rocketbroker.store.dispatch}: adds records of the log to the queues and the index.
  - L{rocketbroker.store.consumequeue}: the queues.
  - L{rocketbroker.store.index}: finds messages by their keys.
  - L{rocketbroker.store.reading}: reads messages for pulls and queries.
  - L{rocketbroker.store.timerwheel}: which message for later is due when.
  - L{rocketbroker.store.retention}: removes old files.
  - L{rocketbroker.store.recovery}: recovers the files after a stop or a crash.
  - L{rocketbroker.store.reader}: a directory opened for reading only.

Beside them:

  - L{rocketbroker.store.assembly}: the parts of a store, put together.
  - L{rocketbroker.store.reads}: what a read is given and gives.
  - L{rocketbroker.store.shared_positions}: the numbers that processes share.
  - L{rocketbroker.store.append_lock}: the lock of appends, as all parts see it.
  - L{rocketbroker.store.store_lock}: the lock of the directory, and the mark of a
    crash.
  - L{rocketbroker.store.running_flags}: what the store can do now, as operators read
    it.
  - L{rocketbroker.store.disk_usage}: how full its disks are.
  - L{rocketbroker.store.file_names}: names of the files of log and queues.
  - L{rocketbroker.store.flush_threshold}: how many pages must wait before a flush.
  - L{rocketbroker.store.corruption_log}: corrupt records that were found.
  - L{rocketbroker.store.quarantine}: files that are taken out of a store, and kept.
  - L{rocketbroker.store.plugins}: plug-ins around the store, and followers of its log.
  - L{rocketbroker.store.dispatched_record}: a record as followers see it.
  - L{rocketbroker.store.raw_log}: the log as bytes, for replication.
  - L{rocketbroker.store.log_tail}: the records of the log in order, for followers.
"""
