# -*- test-case-name: tests.broker.replicas -*-
"""The copies of a broker's messages: masters and slaves.

The bytes are copied by L{rocketbroker.replication}. Which service runs in which
role, its line says (L{rocketbroker.broker.services}).

  - L{metadata_sync}: a slave's copies of its master's tables.
  - L{ha_status}: requests 907 and 908.
  - L{escape_bridge}: sends to other brokers what a slave may not store.
  - L{timer_checkpoint}: what brokers of RocketMQ ask about timers.
"""
