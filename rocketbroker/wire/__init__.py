# -*- test-case-name: tests.wire -*-
"""The remoting protocol, and the replication stream. No I/O.

Bytes become a command, and a command becomes bytes:

  - L{connection}: bytes of one connection, cut into commands.
  - L{proxy_header}: what a proxy puts before the first frame.
  - L{frames}: one frame, both header serializations, its limits.
  - L{other_protocols}: first bytes of other protocols, and what to say then.
  - L{command}: a request or a response, however it is written.
  - L{hot}: the few codes that make the load, without a command.
  - L{codes}: request and response codes, languages;
    L{rocketbroker.wire.versions}: the names of releases.

A command's extension fields are a typed header, and its body is a value:

  - L{headers}, L{rocketbroker.wire.bodies}: by family.
  - L{fastjson}: RocketMQ's dialect of JSON, read
    (L{rocketbroker.wire.json_reader}) and written (L{rocketbroker.wire.json_writer}).
  - L{fields}: members of an object as typed values.
  - L{steps}: work over long bodies, in steps.
  - L{answers}: fields of an answer that may not be missing.

Between a master and its slaves there are no commands:

  - L{hastream}: frames of the log, and reports of positions.
"""
