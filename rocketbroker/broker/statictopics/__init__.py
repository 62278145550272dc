# -*- test-case-name: tests.broker.statictopics -*-
"""Static topics: requests about logical queues, served by physical ones.

Nothing here is asked where there is no static topic. Where there is one, a request
about its logical queue is rewritten for the physical queue that has what is wanted, and
its answer is rewritten back; the responders behind know physical queues only.

  - L{mapped_requests}: sends and offsets; L{mapped_pulls}: pulls.
  - L{other_brokers}: asks the broker that has the physical queue.
  - L{mapping_cleanup}: drops items whose messages are gone, and queues led elsewhere.
"""
