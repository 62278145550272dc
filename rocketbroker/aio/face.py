# -*- test-case-name: tests.aio -*-
"""The client on asyncio: what the core offers is what users have."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Unpack

from rocketbroker.client.options import ClientOptions, client_settings
from rocketbroker.client.runtimes.machine import offset_folder
from rocketbroker.client.runtimes.on_asyncio import AsyncioRuntime
from rocketbroker.client.session import Session


def connect(
    name_servers: str | Iterable[str] | None = None, **options: Unpack[ClientOptions]
) -> Session:
    """A session with the brokers that name servers know.

    It may be made outside of a loop, and belongs to the loop in which it is first used.
    Nothing is opened before the first send or receive.

    @param name_servers: C{host:port}, several with semicolons between, or a list of
        them; unless given, the variable ROCKETMQ_NAMESRV, else 127.0.0.1:9876.
    @param options: see L{ClientOptions}.
    @raise ConfigurationError: something cannot be as it is given.
    """
    client, producer = client_settings(name_servers, options, os.environ)
    return Session(AsyncioRuntime(), client, producer, offset_folder)
