"""Parts that the scripts in C{scripts/bench/} and C{scripts/torture/} stand on.

The modules:

  - L{servers<scripts.lab.servers>}: name servers and brokers as processes;
    L{pair<scripts.lab.pair>}: a master and its slaves;
    L{targets<scripts.lab.targets>}: brokers that are measured.
  - L{inside<scripts.lab.inside>}: the Python that scripts run with.
    L{rows<scripts.lab.rows>}: figures and their bars.
  - L{peers<scripts.lab.peers>}: connections on plain sockets, processes beside, and
    what C{/proc} says of servers. L{pop_load<scripts.lab.pop_load>}: the same for pops.
  - L{javaclient<scripts.lab.javaclient>}, L{javabroker<scripts.lab.javabroker>}: the
    official client and RocketMQ's servers; L{kit<scripts.lab.kit>}: those of a kit that
    is not ours, and its load generator.
  - L{proxyserver<scripts.lab.proxyserver>}: our proxy as a process.
    L{grpcpeer<scripts.lab.grpcpeer>}: a client of gRPC that sends what it is told to;
    L{grpcjava<scripts.lab.grpcjava>},
    L{official_python<scripts.lab.official_python>}: official ones.
"""
