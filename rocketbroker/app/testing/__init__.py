# -*- test-case-name: tests.app.testing -*-
"""C{standalone --testing}: a broker whose time can be moved, and that fails when told.

Nothing here is imported by a broker that runs without it. The modules:

  - L{loopback}: the settings of such a broker, which nobody else can reach.
  - L{moved_time}: the broker's clocks, ahead of those of the machine.
  - L{fault_rules}: what is to fail, and for whom; L{faults}: what stands before all
    responders, and fails.
  - L{mode}: puts them into a broker; requests 31010 and 31011.
"""
