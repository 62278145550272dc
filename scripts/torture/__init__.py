"""Scripts that kill, damage and flood, and check that nothing acknowledged is missing.

What they have in common is in L{harness<scripts.torture.harness>}. The scripts:

  - Brokers that are killed: C{crash.py}, C{transactions.py}, C{pop.py},
    C{replication.py}, C{survival.py}; on full disks: C{full_disk.py}.
  - Our proxy for gRPC, and the broker behind it, under official clients: C{proxy.py}.
  - Members of a group that come, go and are killed: C{group.py}.
  - Jobs that are killed: C{export_kills.py}, C{stream_kills.py}.
  - Stores that are damaged: C{sweep.py}.
  - Brokers beside a model, beside RocketMQ, and under broken frames: C{model.py},
    C{timers.py}, C{export_options.py}, C{scenarios.py}, C{export_java.py},
    C{frames.py}.
"""
