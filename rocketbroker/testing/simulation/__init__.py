# -*- test-case-name: tests.testing.simulation -*-
"""A simulation of clients: answers that a broker has to give, whatever its clients do
at the same time.

A run is a sequence of events: an operation begins, an operation ends with an answer.
Who carries operations out is not known here: real processes
(C{scripts/torture/model.py}), or parts of a broker on a memory network. So the same
seed can drive both.

  - L{operations}: what clients ask, and what they are answered, as values.
  - L{model}: what answers may say; L{generations}: which messages of a topic that is
    deleted and made again can be in which of its generations.
  - L{choices}: which operation comes next, by a seed.
"""
