# -*- test-case-name: tests.wire -*-
"""The remoting protocol: framing, headers, bodies, one connection. No I/O.

Bytes become a command, and a command becomes bytes:

  - L{rocketbroker.wire.connection}: what arrives on one connection, cut into commands.
  - L{rocketbroker.wire.frames}: one frame, both header serializations, its limits.
  - L{rocketbroker.wire.command}: a request or a response, however it is written.
  - L{rocketbroker.wire.hot}: the few codes that make the load, without a command.
  - L{rocketbroker.wire.codes}: request and response codes, languages.

A command's extension fields are a typed header:

  - L{rocketbroker.wire.header}: how fields are read and written.
  - L{rocketbroker.wire.send_headers}, L{rocketbroker.wire.pull_headers},
    L{rocketbroker.wire.client_headers}, L{rocketbroker.wire.admin_headers},
    L{rocketbroker.wire.namesrv_headers}: the headers, by who asks for what.

A command's body is a value:

  - L{rocketbroker.wire.fastjson}: the reference's dialect of JSON, read
    (L{rocketbroker.wire.reading}) and written (L{rocketbroker.wire.emitting}).
  - L{rocketbroker.wire.fields}: members of an object as typed values.
  - L{rocketbroker.wire.topics}, L{rocketbroker.wire.groups},
    L{rocketbroker.wire.heartbeats}: what brokers and clients know.
  - L{rocketbroker.wire.routes}, L{rocketbroker.wire.registration},
    L{rocketbroker.wire.mappings}: what name servers are told and tell.
  - L{rocketbroker.wire.queues}: a queue, as a value and as a key.
"""
