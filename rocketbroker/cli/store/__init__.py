# -*- test-case-name: tests.cli.store -*-
"""C{rocketbroker store}: the verbs for a store's directory, without a broker.

The parts:

  - L{commands}: the noun and the verbs that look.
  - L{verify}, L{repair}, L{truncate}: one verb each.
  - L{pops}: what POP has out.
  - L{options}: options of them all.
"""
