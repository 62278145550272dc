# -*- test-case-name: tests.broker.registration -*-
"""Name servers: registrations with them, and questions to them.

- L{name_servers}: where they are.
- L{registration}: the times and the topics. L{name_server_api}: the requests.
- L{masters}: a slave's master, as they know it.
- L{member_group}: who shares this broker's name; heartbeats.
- L{route_cache}: routes of topics, as name servers know them."""
