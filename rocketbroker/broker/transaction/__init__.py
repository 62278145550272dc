# -*- test-case-name: tests.broker.transaction -*-
"""Transactions: messages that become visible when their producer commits them.

The modules:

  - L{room}: all parts together. L{open_transactions}: half messages without an end.
    L{op_queue}: the op messages that end them.
  - L{end_transaction}: request 37, commit or rollback. L{check_back}: request 39, the
    check at the producer. L{resume_check}: request 323, checks that begin again.
  - L{counters}: for metrics and operators.
"""
