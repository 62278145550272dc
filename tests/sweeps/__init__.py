"""Stores that are damaged in each way there is, in memory; C{scripts/sweep.py} runs
them whole.

- L{tests.sweeps.corpus}: messages whose places are known, and the look at what is left.
- L{tests.sweeps.rot}: every bit of the last records.
"""
