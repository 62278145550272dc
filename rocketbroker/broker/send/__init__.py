# -*- test-case-name: tests.broker.send -*-
"""Sends: requests 10, 310, 320, 36, 324, 325.

The modules:

  - L{send}, with L{send_checks}: requests to drafts, and L{hot_sends}: ordinary ones.
    L{rocketbroker.broker.appends}: how they are stored and answered.
  - L{reply}: 324 and 325 from the replying client, and 326 to the requesting one.
  - L{send_back}: 36, messages to reconsume later; L{dead_letters}: messages that failed
    too often.
"""
