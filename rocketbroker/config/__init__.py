# -*- test-case-name: tests.config -*-
"""Settings: .properties files and typed, documented options.

The modules:

  - L{properties<rocketbroker.config.properties>}: Java's .properties syntax.
  - L{keyed<rocketbroker.config.keyed>}: from keys and texts to frozen, typed objects.
  - L{paths<rocketbroker.config.paths>}: relative paths, and those in the home
    directory.
  - L{machine<rocketbroker.config.machine>}: defaults that depend on the machine.
  - L{levels<rocketbroker.config.levels>}: how long each delay level is.
  - L{hours<rocketbroker.config.hours>}: when expired files are removed.
  - L{addresses<rocketbroker.config.addresses>}: of name servers, and the one to tell.
  - L{broker<rocketbroker.config.broker>}, L{store<rocketbroker.config.store>},
    L{remoting<rocketbroker.config.remoting>} (server and client),
    L{namesrv<rocketbroker.config.namesrv>}: every key of RocketMQ's.
  - L{about_pop<rocketbroker.config.about_pop>}: what those of POP do.
  - L{broker_settings<rocketbroker.config.broker_settings>}: all that one file says to a
    broker, checked as a whole; C{NamesrvSettings} in L{namesrv} is the same for a name
    server.
  - L{unsupported<rocketbroker.config.unsupported>}: settings that refuse the start.
  - L{running<rocketbroker.config.running>}: which of them a request may change.
  - L{effects<rocketbroker.config.effects>}: which settings have an effect.
  - L{settings_page<rocketbroker.config.settings_page>}: C{docs/settings.rst}.
"""
