# -*- test-case-name: tests.auth -*-
"""Access control: signatures of requests, and rules that say who may do what. No I/O.

What comes in, and what comes out:

  - L{request}: what a request asks for.
  - L{decision}: whether it may be had, and which rule says so.

Who asks:

  - L{signatures}: signed requests of the remoting protocol.
  - L{grpc_signatures}: signed calls of gRPC clients.
"""
