# -*- test-case-name: tests.testing -*-
"""A broker for the tests of users, and doubles that our own tests share.

A test of a program that sends or receives has a broker of its own::

    from rocketbroker.testing import Broker

    with Broker() as broker:
        orders = broker.topic("Orders")
        program(broker.name_server, orders)
        assert [message.text for message in broker.messages(orders)] == ["paid"]

pytest has it as the fixture C{rocketmq}. C{docs/testing.rst} has more.

The modules:

  - L{brokers}: that broker, and the fixture.
  - L{network}: servers and clients without ports and time; L{connections}: a connection
    that keeps what is sent; L{scripted}: servers for the blocking client.
  - L{runtime}: clock and network of clients; L{puppet_cluster}: name server and brokers
    in it.
  - L{files}: a disk in memory, of which L{node} is one file, and L{spoiled} what cannot
    be read; L{users}: which processes use files; L{processes}: which there are.
  - L{threads}: work of threads, done when a test says so.
  - L{simulation}: what a broker has to answer, as a model, and what is asked of it, by
    dice.
  - L{contracts}: suites that an implementation of an interface and its double pass.
  - L{contexts}: the context of a broker, of which a test makes one of its rooms.
  - L{replicas}: slaves that have as much of the log as a test says; L{master_link}:
    what a slave gets it by.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketbroker.testing.brokers.broker import AsyncBroker, Broker

__all__ = ["Broker", "AsyncBroker"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("rocketbroker.testing.brokers.broker"), name)
