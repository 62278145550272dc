# -*- test-case-name: tests.broker.access -*-
"""Access control: who may do what at the ports of this broker.

What the rules say stands in L{rocketbroker.auth}; here is where they are kept, who
changes them, and the hook that asks them before each request.

  - L{room}: what the settings ask for.
  - L{plain_access}: ACL 1.0, with requests 50 to 54; L{plain_files}: its files.

A broker without access control has none of it.
"""
