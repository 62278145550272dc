# -*- test-case-name: tests.broker.registration -*-
"""Name servers: what they are told, and asked.

- L{registration}: when, and what. L{name_server_api}: the requests.
- L{route_cache}: routes of topics, as name servers know them.
"""
