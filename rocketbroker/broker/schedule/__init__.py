# -*- test-case-name: tests.broker.schedule -*-
"""Messages with a delay level, and their delivery when they are due.

The modules:

  - L{schedule_service} delivers due messages to their topics.
  - L{delay_level}: one level, its progress, and the search for its due messages.
  - L{delay_offsets}: C{delayOffset.json}, the progress of all levels.
  - L{delay_recovery}: after a crash, finds what was delivered but not yet recorded.
"""
