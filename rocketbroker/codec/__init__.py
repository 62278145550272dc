# -*- test-case-name: tests.codec -*-
"""The codec: the code that most of a broker's time goes into, compiled to one
extension.

It works in large bites on bytes and native integers. mypyc makes machine code of it
(C{scripts/wheel.py}). The same files run in the interpreter, where the broker's
ordinary code is faster, and is used instead.

  - L{build}: which form runs; the broker asks once, at import.
  - L{mypyc_types}: the names that the compiler knows: native integers, words in bytes.
  - L{scanning}: the ways over the bytes of a JSON header.
  - L{sends}: cuts a connection's bytes into sends and reads them.
  - L{append}: messages on their way into the log: places, records, queue entries,
    answers.
  - L{batches}: cuts a batch into its messages.
  - L{entries}: where the records of queue entries stand in the log.
  - L{received}: what a master sends, cut into records.
  - L{keys}: the hashes of keys for the index, and its entries.

Compiled with it is ordinary code that runs for each connection that is ready, each turn
and each pull: C{scripts/compiled.py} has the list.

Both forms store and send the same bytes. What the compiled one does not know as the
usual shape it leaves to the ordinary code, so that each rule is in one place.
"""
