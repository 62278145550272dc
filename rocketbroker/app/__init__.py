# -*- test-case-name: tests.app -*-
"""Programs: broker, name server, standalone, the rocketbroker command.

The only package that imports the reactor.

  - L{broker}, L{namesrv}: what twistd runs, and each as a service on a reactor.
  - L{standalone}: both in one process.
  - L{plugins}: the extensions of others that a store gets, as Twisted finds them.
  - L{options}: flags that the servers share, and how a program refuses.
  - L{signals}: what they do when their terminal goes away.
  - L{steadiness}: a reactor whose time only goes forward.
  - L{metricsport}: C{/metrics} and C{/healthz} of either.
  - L{command}: the C{rocketbroker} command; L{lazycommands}: verbs that are imported
    when they are wanted.
  - L{storecommands}: its verbs for a store's directory; L{storeverify},
    L{storerepair}: two of them; L{storeoptions}: what they are told; L{rows}: how they
    print; L{progress}: how far they are.
"""
