# -*- test-case-name: tests.app.test_plugins -*-
"""Plug-ins of the store, found by Twisted's plug-in system and chosen by settings.

Nothing is looked for unless a setting names it, so that a broker without plug-ins
starts as fast as if there were none. What plug-ins provide:
L{rocketbroker.store.plugins}.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import Logger
from twisted.plugin import getPlugins
from twisted.python.failure import Failure
from zope.interface.interface import InterfaceClass

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.plugins import IAttachedPlugin, IAttachment
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.request_hooks import IRequestHook, IRequestHookPlugin
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.plugins import IFollowerPlugin, IStorePlugin

if TYPE_CHECKING:
    from rocketbroker.broker.broker import Broker

T = TypeVar("T")

_log: Final = Logger()

#: How long an attachment may take to stop.
STOP_SECONDS: Final = 10.0

#: A name becomes part of a path.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def chosen(key: str, text: str, interface: InterfaceClass) -> list[Any]:
    """The plug-ins that a setting names, in its order.

    @param key: the setting's key, for the sentence.
    @param text: the names, separated by commas.
    @param interface: what they provide.
    @raise ConfigurationError: one is not there, or stands there twice; one sentence.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        return []
    found = {
        plugin.name: plugin
        for plugin in getPlugins(cast(Any, interface))
        if _NAME.fullmatch(str(getattr(plugin, "name", "")))
    }
    for at, name in enumerate(names):
        if name not in found:
            there = ", ".join(sorted(found)) or "none"
            raise ConfigurationError(
                f"{key} names the plug-in {name!r}, which cannot be found; there are: "
                f"{there}."
            )
        if name in names[:at]:
            raise ConfigurationError(f"{key} names the plug-in {name!r} twice.")
    return [found[name] for name in names]


def wrapped(store: IStore, settings: BrokerSettings) -> IStore:
    """The store as the plug-ins of messageStorePlugIn let the broker see it.

    @raise ConfigurationError: one cannot be had; one sentence.
    """
    names = settings.broker.message_store_plug_in
    for plugin in reversed(chosen("messageStorePlugIn", names, IStorePlugin)):
        store = made(plugin, plugin.wrap, store, settings.as_properties())
        if not IStore.providedBy(store):
            raise ConfigurationError(
                f"The plug-in {plugin.name!r} gave {store!r:.100}, which is no store."
            )
    return store


def followers_of(
    settings: BrokerSettings, reactor: Any
) -> list[tuple[IFollowerPlugin, InThread]]:
    """The plug-ins of dispatchFollowers, each with a thread of its own.

    @raise ConfigurationError: one cannot be had; one sentence.
    """
    names = settings.broker.dispatch_followers
    return [
        (plugin, OwnThread(reactor, plugin.name))
        for plugin in chosen("dispatchFollowers", names, IFollowerPlugin)
    ]


def hooks_of(names: str, settings: Mapping[str, str]) -> list[IRequestHook]:
    """The hooks of requestHooks, in its order.

    @raise ConfigurationError: one cannot be had; one sentence.
    """
    plugins = chosen("requestHooks", names, IRequestHookPlugin)
    return [made(plugin, plugin.hook, settings) for plugin in plugins]


def attachments_of(broker: Broker, settings: BrokerSettings) -> list[IAttachment]:
    """The plug-ins of attachedPlugins, attached.

    @raise ConfigurationError: one cannot be had; one sentence.
    """
    names, texts = settings.broker.attached_plugins, settings.as_properties()
    plugins = chosen("attachedPlugins", names, IAttachedPlugin)
    return [made(plugin, plugin.attach, broker, texts) for plugin in plugins]


def made(plugin: Any, make: Callable[..., T], *words: object) -> T:
    """What a plug-in makes.

    @raise ConfigurationError: it cannot; one sentence.
    """
    try:
        return make(*words)
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"The plug-in {plugin.name!r} failed: {type(error).__name__}: {error}."
        ) from error


def start_all(attachments: Iterable[IAttachment]) -> None:
    """Start attachments; none keeps the broker from its work."""
    for attachment in attachments:
        try:
            attachment.start()
        except Exception:
            _log.failure("A plug-in did not start: {one!r}", one=attachment)


async def stop_all(attachments: Iterable[IAttachment], clock: Any) -> None:
    """Stop attachments, the last one first; none keeps the broker from stopping.

    @param clock: the reactor.
    """
    for attachment in reversed([*attachments]):
        try:
            stopped = maybeDeferred(attachment.stop)
            await stopped.addTimeout(STOP_SECONDS, clock)
        except Exception:
            _log.failure("A plug-in did not stop: {one!r}", one=attachment)


@final
class OwnThread:
    """Runs functions one after the other in a thread that nobody else uses.

    The reactor's pool is not for what foreign code may do for ever: the broker needs it
    to reach its disk, and waits for it when it stops. This thread ends with the process
    whatever it does.
    """

    def __init__(self, reactor: Any, name: str) -> None:
        """
        @param name: the thread's name, as debuggers show it.
        """
        self._reactor = reactor
        self._name = name
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._runs = False

    def __call__(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function} after all that came before it."""
        if not self._runs:
            self._runs = True
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        done: Deferred[T] = Deferred()

        def work() -> None:
            try:
                result: T | Failure = function()
            except BaseException:
                result = Failure()  # type: ignore[no-untyped-call]
            self._reactor.callFromThread(done.callback, result)

        self._work.put(work)
        return done

    def _run(self) -> None:
        while True:
            self._work.get()()
