# -*- test-case-name: tests.broker.messages -*-
"""Special messages, as pure functions.

The modules:

  - L{delay_messages}: messages with a delay level. L{timer_messages}: for any time.
  - L{transaction_messages}: half and op messages.
  - L{outer_batch}, L{inner_batch}: batches. L{lmq}: messages in LMQs.
  - L{forwarded_message}: messages that go to another broker.
  - L{message_types}: the type of a message in metrics.
"""
