# -*- test-case-name: tests.config -*-
"""Settings: .properties files and typed, documented options.

The modules:

  - L{properties}: Java's .properties syntax.
  - L{keyed}: from keys and texts to frozen, typed objects.
  - L{paths}: relative paths, and those in the home
    directory.
  - L{machine}: defaults that depend on the machine.
  - L{forks}: who has to be told in the child of one.
  - L{levels}: how long each delay level is.
  - L{hours}: when expired files are removed.
  - L{addresses}: of name servers, and the one to tell.
  - L{broker}, L{store},
    L{remoting} (server and client),
    L{namesrv}: every key of RocketMQ's.
  - L{broker_settings}: all that one file says to a
    broker, checked as a whole; C{NamesrvSettings} in L{namesrv} is the same for a name
    server.
  - L{unsupported}: settings that refuse the start.
  - L{running}: which of them a request may change.
  - L{effects}: which settings have an effect.
  - L{settings_page}: C{docs/settings.rst}.
"""
