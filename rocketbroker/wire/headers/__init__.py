# -*- test-case-name: tests.wire.headers -*-
"""Typed headers: the extension fields of commands.

The modules:

  - L{header}: how fields are read and written.
  - L{send}, L{pull}, L{client}, L{admin}, L{namesrv}: the headers, by kind of request.
"""
