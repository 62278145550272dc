"""Stores that are damaged in each way there is, in memory;
C{scripts/torture/sweep.py} runs them whole.

- L{tests.sweeps.corpus}: messages whose places are known, and the look at what is left.
- L{tests.sweeps.torn}: files that end, or are zeros, from every byte on.
- L{tests.sweeps.rot}: every bit of the last records.
- L{tests.sweeps.power}: the power goes before any call to the disk.
- L{tests.sweeps.slaves}: the same at a slave, which goes on with its master.
- L{tests.sweeps.broker}: the same under a whole broker.
- L{tests.sweeps.transactions}: the same in the middle of transactions;
  L{scripts.torture.twice} says which messages may be delivered twice.
"""
