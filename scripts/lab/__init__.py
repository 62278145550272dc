"""Parts of the scripts in C{scripts/bench/} and C{scripts/torture/}.

- L{peers<scripts.lab.peers>}: connections on plain sockets, processes beside, and
  what C{/proc} says of servers. L{pop_load<scripts.lab.pop_load>}: the same for pops.
- L{targets<scripts.lab.targets>}: brokers that are measured. L{kit<scripts.lab.kit>}:
  servers and load generators that are not ours.
"""
