# -*- test-case-name: tests.config -*-
"""Settings: .properties files and typed, documented options.

- L{properties<rocketbroker.config.properties>}: Java's .properties syntax.
- L{keyed<rocketbroker.config.keyed>}: from keys and texts to frozen, typed objects.
- L{machine<rocketbroker.config.machine>}: defaults that depend on the machine.
- L{levels<rocketbroker.config.levels>}: how long each delay level is.
- L{hours<rocketbroker.config.hours>}: when expired files are removed.
- L{broker<rocketbroker.config.broker>}, L{store<rocketbroker.config.store>},
  L{remoting<rocketbroker.config.remoting>} (server and client),
  L{namesrv<rocketbroker.config.namesrv>}: every key of RocketMQ's.
- L{broker_settings<rocketbroker.config.broker_settings>}: all that one file says to a
  broker, checked as a whole; C{NamesrvSettings} in L{namesrv} is the same for a name
  server.
"""
