"""What 0.1.0 has written is read: a store, an export and a checkpoint of Spark.

All other tests read what the code of today writes, so nothing else tells whether files
of a release are still understood. C{files.tar.xz} holds what programs of commit
d7827daf have left, the last one whose packages have the names of 0.1.0. They ran with
its directory in PYTHONPATH, as processes, and talked by sockets:

  - A name server and a broker started with the settings of L{archive.SIZES}, and
    clients sent: to C{Orders} (two queues) 100 messages with tag, key and property
    C{number} (L{archive.body_of}); to C{Waits} one for each of the delay levels 1 and
    17 and the delays of a second and an hour; to C{Popped}, C{InOrder} and C{Batches}
    (batch queues) six messages each, and to the last one a batch of four.
  - Group C{readers} committed offset 7 of both queues. Group C{poppers} popped four
    messages of C{Popped}, and in order of C{InOrder}, for an hour, and acknowledged the
    first of each. Three half messages of group C{PG} were committed, rolled back and
    left open. Then the broker got SIGTERM: C{store} is its directory.
  - After 40 messages, and after 80::

        rocketbroker export run Orders --store STORE --broker-name broker-a \\
            --to export --file-size 8k --cores 1

    As if the second run had died before its end, C{commits/00000002.json} was removed.
  - Over a broker of 0.1.0 on a copy of the store, a stream of PySpark 4.3.0 read
    C{Orders} from the earliest offsets, 30 messages in each micro-batch
    (C{minOffsetsPerTrigger} and C{maxOffsetsPerTrigger}, C{availableNow}), into Parquet
    files. As if it had died in its third micro-batch, of C{checkpoint} the third commit
    was removed, and all of the fourth.
"""
