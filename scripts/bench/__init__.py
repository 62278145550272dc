"""Measurements: what servers, stores and exports cost, beside RocketMQ where it runs.

The scripts:

  - C{measure_start.py}: a start. C{suite_speed.py}: a suite of tests with a topic each.
  - C{security_cost.py}: CPU of a message with TLS and access control.
  - C{benchmark.py}: CPU of a message. C{pop_cost.py}, C{replication_cost.py}: the same
    of pops and of copies. C{client_speed.py}: that of a client; C{proxy_cost.py}: that
    of a proxy.
  - C{scale.py}: many topics, groups and clients. C{overload.py}: more than a broker can
    take.
  - C{recovery.py}, C{verify_speed.py}: how fast stores are read after a kill and by
    C{store verify}.
  - C{export_speed.py}: exports beside bare pyarrow.
"""
