# -*- test-case-name: tests.broker.transaction -*-
"""Messages that are visible when their producer says so.

- L{service}: all parts of it. L{open_transactions}: half messages that are not ended.
  L{op_queue}: the op messages that end them. L{end_transaction} (37). L{check_back}
  (39). L{counters}: for metrics and administrators.
"""
