"""Write bills: start as many of this command as there is work for."""

from contextlib import suppress

from django.core.management.base import BaseCommand
from django.db import close_old_connections

from rocketbroker.threads import ReceivedMessage
from shop.mq import mq


class Command(BaseCommand):
    """A member of the group `billing`, until SIGTERM or Ctrl-C."""

    help = "Write bills for orders."

    def handle(self, *args: object, **options: object) -> None:
        """Run."""

        @mq.on("Orders", group="billing", concurrency=4, start="earliest")
        def bill(message: ReceivedMessage) -> None:
            close_old_connections()  # each thread of the pool has its own
            self.stdout.write(f"order {message.keys[0]}: one {message.text}")
            self.stdout.flush()

        with mq, suppress(KeyboardInterrupt):
            mq.run()
