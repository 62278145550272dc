# -*- test-case-name: tests.store.recovery -*-
"""Recovery: makes a store that can go on from the files that a stop has left.

The modules:

  - L{recovery}: its phases. L{outcome}: its decisions and findings. L{log_scan}: the
    log read and entered into the queues.
  - L{truncation}: the end of a log that is in use is taken away, and what is done of
    that when a machine stops meanwhile.
  - L{clean_shutdown}: the ends of the queues at a clean stop, and whether a topic can
    have been deleted since.
"""
