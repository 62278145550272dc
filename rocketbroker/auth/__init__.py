# -*- test-case-name: tests.auth -*-
"""Access control: signatures of requests, and rules that say who may do what. No I/O.

What comes in, and what comes out:

  - L{request}: what a request asks for.
  - L{decision}: whether it may be had, and which rule says so.

Who asks:

  - L{signatures}: signed requests of the remoting protocol.
  - L{grpc_signatures}: signed calls of gRPC clients.

ACL 1.0, the accounts of C{plain_acl.yml}:

  - L{plain}: the rules, in RocketMQ's order.
  - L{permissions}: permissions, and those that requests need.
  - L{address_patterns}: addresses that need no signature.
  - L{plain_documents}: the files as values; L{plain_edits}:
    what operators change in them.

ACL 2.0, users and their policies:

  - L{policies}: the rules: is it the user, and may it do that.
  - L{wanted}: resources and actions that requests ask for, and
    L{wanted_by_calls} those of gRPC calls.
  - L{order}: which of several entries decides, in 5.3 and since 5.4.
  - L{entries}: entries of policies; L{resources}: what they
    are about; L{users}: users, and all documents together.
  - L{policy_documents}: their JSON;
    L{policy_edits}: what operators change.
  - L{migration}: accounts of ACL 1.0 become users.

Names in bodies of requests: L{named_in_bodies}. Java's ways with
strings: L{java_strings}.
"""
