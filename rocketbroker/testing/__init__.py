# -*- test-case-name: tests.testing -*-
"""Doubles that users and our own tests share.

The modules:

  - L{network}: servers and clients without ports and time; L{connections}: a connection
    that keeps what is sent; L{scripted}: servers for the blocking client.
  - L{runtime}: clock and network of clients; L{puppet_cluster}: name server and brokers
    in it.
  - L{files}: a disk in memory, of which L{node} is one file, and L{spoiled} what cannot
    be read; L{users}: which processes use files; L{processes}: which there are.
  - L{threads}: work of threads, done when a test says so.
  - L{simulation}: what a broker has to answer, as a model, and what is asked of it, by
    dice.
  - L{contracts}: suites that an implementation of an interface and its double pass.
  - L{contexts}: the context of a broker, of which a test makes one of its rooms.
  - L{replicas}: slaves that have as much of the log as a test says; L{master_link}:
    what a slave gets it by.
"""
