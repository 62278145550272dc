# -*- test-case-name: tests.broker.registration -*-
"""Name servers: registrations with them, and questions to them.

The modules:

  - L{name_servers}: where they are.
  - L{registration}: the times and the topics. L{name_server_api}: the requests.
  - L{masters}: a slave's master, as they know it.
  - L{member_group}: who shares this broker's name; heartbeats.
  - L{membership}: whose copies count, and who is the master.
  - L{known_hosts}: from which host a connection comes.
  - L{route_cache}: routes of topics, as name servers know them."""
