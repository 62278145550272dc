# -*- test-case-name: tests.wire -*-
"""The remoting protocol, and the replication stream. No I/O.

Bytes become a command, and a command becomes bytes:

  - L{rocketbroker.wire.connection}: bytes of one connection, cut into commands.
  - L{rocketbroker.wire.proxy_header}: what a proxy puts before the first frame.
  - L{rocketbroker.wire.frames}: one frame, both header serializations, its limits.
  - L{rocketbroker.wire.foreign}: first bytes of other protocols, and what to say then.
  - L{rocketbroker.wire.command}: a request or a response, however it is written.
  - L{rocketbroker.wire.hot}: the few codes that make the load, without a command.
  - L{rocketbroker.wire.codes}: request and response codes, languages;
    L{rocketbroker.wire.versions}: the names of releases.

A command's extension fields are a typed header, and its body is a value:

  - L{rocketbroker.wire.headers}, L{rocketbroker.wire.bodies}: by family.
  - L{rocketbroker.wire.fastjson}: RocketMQ's dialect of JSON, read
    (L{rocketbroker.wire.reading}) and written (L{rocketbroker.wire.emitting}).
  - L{rocketbroker.wire.fields}: members of an object as typed values.
  - L{rocketbroker.wire.steps}: work over long bodies, in steps.

Between a master and its slaves there are no commands:

  - L{rocketbroker.wire.hastream}: frames of the log, and reports of positions.
"""
