# -*- test-case-name: tests.broker.acting -*-
"""Slaves that act for a master, and masters that come back.

The modules:

  - L{group_roles}: how a broker gets into the group of its name, and acts in it.
  - L{acting_master}: which slave does an absent master's work.
  - L{escape_delays}, L{escape_halves}: that work: delayed messages and open
    transactions go to another group.
  - L{ha_exchange}: where a master is followed, asked and told.
  - L{pre_online}: what a broker does before name servers hear of it.
  - L{reverse_sync}: what a master that comes back takes over from its slaves.
"""
