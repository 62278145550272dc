# -*- test-case-name: tests.blocking -*-
"""A client on a plain socket, without Twisted and without threads of its own.

Spark executors and tools use it; programs that send and receive use
L{rocketbroker.threads}. Nothing here opens a connection before it is used. Threads may
share a C{Client} and a C{Producer}. Clients, producers and pullers can be pickled, and
a copy makes its own connections::

    client = Client(Settings("127.0.0.1:9876"))
    client.create_topic("Orders", queues=4)
    Producer(client).send(Message("Orders", b"one", tags="new", keys=["1"]))

    for queue in client.queues("Orders"):
        start, until = client.min_offset(queue), client.max_offset(queue)
        for chunk in Puller(client).read(queue, start, until):
            for message in messages(chunk.data):
                print(message.queue_offset, message.properties, message.body)

The modules:

  - L{session}: connect, send, receive, acknowledge; it goes with the next release.
  - L{settings}: the settings of a client.
  - L{client}: questions about topics, queues and offsets;
    creating topics.
  - L{messages}: messages to send, and results of
    sends.
  - L{producer}: sending one, many, batches.
  - L{pipeline}: sending a stream: batches that fill,
    several requests under way.
  - L{puller}: one pull, or a range with several pulls in
    flight; decoding what came.
  - L{consumer}: all queues of a topic in turn, and
    where the group goes on.
  - L{routes}: where topics are, from the name servers.
  - L{connections},
    L{connection}: one connection for each server and
    thread, and the requests under way on it.
  - L{answers}: reading answers, and whether another try
    may help.
  - L{machine}: sockets, clocks and an identity, which
    tests replace.

The names below are imported when they are first used, so that importing a module of the
package costs no more than that module.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketbroker.blocking.client import Client
    from rocketbroker.blocking.consumer import Consumer
    from rocketbroker.blocking.messages import Message, SendResult
    from rocketbroker.blocking.producer import Producer
    from rocketbroker.blocking.puller import Puller
    from rocketbroker.blocking.routes import MessageQueue
    from rocketbroker.blocking.session import Received, Receiver, Session, connect
    from rocketbroker.blocking.settings import Settings
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
    "connect",
    "Session",
    "Receiver",
    "Received",
    "Client",
    "Settings",
    "Message",
    "SendResult",
    "MessageQueue",
    "Producer",
    "Consumer",
    "Puller",
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

_MODULES = {
    "connect": "session",
    "Receiver": "session",
    "Received": "session",
    "SendResult": "messages",
    "Message": "messages",
    "MessageQueue": "routes",
}

#: Names of errors.
_ERRORS = __all__[__all__.index("BrokerError") :]

#: Names that go with the next release, and what to import instead.
_GOING = {
    "connect": "rocketbroker.threads.connect",
    "Session": "rocketbroker.threads.Session",
    "Receiver": "rocketbroker.threads.MessageStream",
    "Received": "rocketbroker.threads.ReceivedMessage",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _GOING:
        warnings.warn(
            f"rocketbroker.blocking.{name} goes with the next release; use "
            f"{_GOING[name]}, where the members of a group share its queues",
            DeprecationWarning,
            stacklevel=2,
        )
    if name in _ERRORS:
        return getattr(import_module("rocketbroker.errors"), name)
    module = import_module(f"{__name__}.{_MODULES.get(name, name.lower())}")
    return getattr(module, name)
