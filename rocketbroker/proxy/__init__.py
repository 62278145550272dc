# -*- test-case-name: tests.proxy -*-
"""A proxy: gRPC for the clients of RocketMQ 5, remoting to any brokers.

It is a process of its own, on grpcio's server for asyncio and on the asyncio runtime of
our own client. C{docs/facts/proxy.md} says what RocketMQ's Proxy does.

From a call to its answer:

  - L{front}: the port: TLS and plain text.
  - L{splice}: a connection of a client, joined with one of the server.
  - L{frames}: where frames of HTTP/2 end, to say farewell.
  - L{messages_pb2}: the messages, made of C{messages.proto} by
    C{scripts/proto.py}.
  - L{service}: the methods of gRPC, and who calls.
  - L{access}: whether the caller may make it.
  - L{calls}: each call from its request to its answer.
  - L{telemetry}: settings of clients, and what brokers ask
    producers.

What they are made of, all of it pure:

  - L{statuses}: codes, and what is refused.
  - L{names}: names of topics and groups.
  - L{routes}: queues and assignments.
  - L{sends}: messages to be sent.
  - L{pops}: what a receive asks for, and what comes.
  - L{received}: messages and receipt handles.
  - L{clients}: who is there, and what it has to go by.
  - L{transactions}: where half messages are.
  - L{renewal}: invisible times that are made longer.

Around them:

  - L{settings}: rmq-proxy.json.
  - L{counts}: how many calls there were, and how long they took.
  - L{health}: whether it serves, by gRPC's own protocol.
  - L{brokers}: what is asked of brokers, and remembered;
    L{lookups}: what is remembered of users and policies.
  - L{inner_client}: in whose name brokers are asked, and by TLS.
  - L{server}: one proxy.
"""
