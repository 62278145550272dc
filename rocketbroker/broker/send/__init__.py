# -*- test-case-name: tests.broker.send -*-
"""Sends: requests 10, 310, 320, 36, 324, 325.

- L{send}, with L{send_checks}: requests to drafts. L{append_batcher}: the sends of one
  turn become one append, and their answers.
- L{reply}: 324 and 325 from the client that answers, and 326 to the one that asked.
- L{send_back}: 36, what consumers reconsume later; L{dead_letters}: what they have
  given up.
"""
