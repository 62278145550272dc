"""A member of ours, beside those of Java."""

from __future__ import annotations

import threading
from typing import Any

from rocketbroker.threads import MessageQueue, ReceivedMessage, connect


class Ours:
    """A member of ours.

    @ivar found: what it was given; all is acknowledged.
    """

    def __init__(self, names: str, topic: str, group: str, **options: Any) -> None:
        """
        @param options: of the session, and, those that it does not know, of the member.
        """
        kinds = ("assignment", "mode")
        own = {name: options.pop(name) for name in kinds if name in options}
        self.session = connect(names, route_seconds=1.0, **options)
        self.stream = self.session.consumer(topic, group, start="earliest", **own)
        self.found: list[ReceivedMessage] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with self.session, self.stream as messages:
            while not self._stopped.is_set():
                message = messages.next(timeout=0.2)
                if message is not None:
                    self.found.append(message)
                    message.ack()

    def queues_of(self, topic: str) -> list[MessageQueue]:
        """Its queues of a topic."""
        return [queue for queue in self.stream.queues if queue.topic == topic]

    def stop(self) -> None:
        """Leave the group."""
        self._stopped.set()
        self._thread.join()
