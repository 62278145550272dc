# -*- test-case-name: tests.app.test_plugins -*-
"""The interfaces of plug-ins that are attached to a broker.

They are found by Twisted's plug-in system and chosen by the setting C{attachedPlugins}
with their names, separated by commas: a further port, a watch over topics, a program
that sends by itself. RocketMQ's C{BrokerAttachedPlugin}. Plug-ins of the store stand in
L{rocketbroker.store.plugins}, those around requests in
L{rocketbroker.remoting.request_hooks}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface

if TYPE_CHECKING:
    from rocketbroker.broker.broker import Broker


class IAttachment(Interface):
    """What a plug-in does beside a broker. All calls come in the reactor's thread."""

    def start() -> None:
        """The broker has begun to work."""

    def stop() -> Deferred[None] | None:
        """The broker is about to stop, and waits for this, some seconds at most."""


class IAttachedPlugin(Interface):
    """Makes an attachment."""

    name: str = Attribute("Its name in the setting attachedPlugins.")

    def attach(broker: Broker, settings: Mapping[str, str]) -> IAttachment:
        """The attachment; made once, before the broker listens.

        @param broker: its rooms are its attributes. They change from release to
            release.
        @param settings: all settings as text, but secrets; also those that only the
            plug-in knows.
        @raise ConfigurationError: the broker cannot start so; one sentence.
        """
