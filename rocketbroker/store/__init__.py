# -*- test-case-name: tests.store -*-
"""The message store, in RocketMQ's files.

What the services see is in L{rocketbroker.store.interfaces};
L{rocketbroker.store.message_store} offers it. Its rooms, in the order in which a
message meets them:

- L{rocketbroker.store.commitlog}: the log of all messages.
- L{rocketbroker.store.dispatch}: from the log into the queues and the index.
- L{rocketbroker.store.consumequeue}: the queues.
- L{rocketbroker.store.index}: messages by their keys.
- L{rocketbroker.store.reading}: messages for pulls and queries.
- L{rocketbroker.store.retention}: old files are removed.
- L{rocketbroker.store.recovery}: what a start does with what a stop has left.
- L{rocketbroker.store.reader}: a directory opened for reading only.

Beside them:

- L{rocketbroker.store.assembly}: the parts of a store, put together.
- L{rocketbroker.store.shared_positions}: the numbers that processes share.
- L{rocketbroker.store.append_lock}: the lock of appends.
- L{rocketbroker.store.store_lock}: the lock of the directory, and how it was left.
- L{rocketbroker.store.running_flags}: what the store can do now, as operators read it.
- L{rocketbroker.store.disk_usage}: how full its disks are.
- L{rocketbroker.store.file_names}: names of the files of log and queues.
- L{rocketbroker.store.flush_threshold}: whether a flush is worth it.
- L{rocketbroker.store.corruption_log}: corrupt records that were found.
- L{rocketbroker.store.quarantine}: what is taken out of a store, and kept.
- L{rocketbroker.store.plugins}: plug-ins before the store and behind it.
- L{rocketbroker.store.dispatched_record}: a record as the latter see it.
- L{rocketbroker.store.log_tail}: stored messages in order, for the latter.
"""
