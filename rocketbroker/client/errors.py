# -*- test-case-name: tests.client -*-
"""The errors of a client, to be imported from one place.

All are L{RocketbrokerError}. What to do next:

  - L{ConfigurationError}, L{MessageIllegal}: change the call.
  - L{ConnectionLost}, L{RequestTimeout}: servers could not be reached for as long as
    the settings say. A message may have been stored all the same.
  - L{TopicNotExist}: create the topic, or let brokers create topics.
  - L{NoPermission}, and any other L{BrokerError}: C{code} and text are the broker's.
  - L{ClientClosed}: it was stopped; make another one.
"""

from __future__ import annotations

from rocketbroker.errors import (
    BrokerError,
    ClientClosed,
    ConfigurationError,
    ConnectionLost,
    MessageIllegal,
    NoBroker,
    NoPermission,
    RemoteProtocolError,
    RequestTimeout,
    RocketbrokerError,
    SystemBusy,
    TopicNotExist,
)

__all__ = [
    "BrokerError",
    "ClientClosed",
    "ConfigurationError",
    "ConnectionLost",
    "MessageIllegal",
    "NoBroker",
    "NoPermission",
    "RemoteProtocolError",
    "RequestTimeout",
    "RocketbrokerError",
    "SystemBusy",
    "TopicNotExist",
]
