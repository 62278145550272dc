# -*- test-case-name: tests.broker.replicas -*-
"""The copies of a broker's messages: masters, slaves, and which of them does what.

The bytes are copied by L{rocketbroker.replication}. Which loop runs in which role is a
column of the table in L{rocketbroker.broker.services}.

- L{metadata_sync}: a slave's copies of its master's tables.
- L{acting_master}: which slave does an absent master's work.
- L{ha_exchange}: where a master is followed, asked and told.
- L{pre_online}: what a broker does before name servers hear of it.
- L{reverse_sync}: what a master that comes back takes over from its slaves.
- L{ha_status}: requests 907 and 908.
- L{escape_bridge}: sends to other brokers what a slave may not store.
- L{timer_checkpoint}: what brokers of RocketMQ ask about timers.
"""
