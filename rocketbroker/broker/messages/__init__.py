# -*- test-case-name: tests.broker.messages -*-
"""Messages that are more than a body: pure functions.

- L{delay_messages}: messages that wait for a delay level. L{transaction_messages}: half
  and op messages. L{outer_batch}, L{inner_batch}: batches. L{lmq}: messages in several
  queues. L{message_types}: what a message counts as.
"""
