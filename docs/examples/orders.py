"""Send orders, and let a group of consumers work on them.

Start a broker, then this program::

    rocketbroker standalone --temporary
    python3 docs/examples/orders.py 127.0.0.1:9876

It ends when no order has come for five seconds.
"""

import sys

from rocketbroker.blocking import Client, Settings
from rocketbroker.threads import Session, connect


def place(mq: Session, count: int) -> None:
    """Send orders; every third is not paid."""
    for number in range(count):
        mq.send(
            "Orders",
            f"order {number}",
            tag="open" if number % 3 == 0 else "paid",
            keys=[f"order-{number}"],
            properties={"shop": "Berlin"},
        )
    # A reminder that nobody sees before its time: delay level 2 is 5 seconds.
    mq.send("Reminders", "check the open orders", delay_level=2)


def bill(mq: Session) -> list[str]:
    """Write invoices for paid orders; one fails the first time."""
    billed: list[str] = []
    failed = False
    orders = mq.consumer("Orders", group="billing", tags="paid", start="earliest")
    with orders:
        while order := orders.next(timeout=5):
            if order.text == "order 4" and not failed:
                failed = True
                order.retry(delay_level=1)  # it comes again after a second
                continue
            billed.append(order.text)
            order.ack()
    return billed


def lag(client: Client, topic: str, group: str) -> int:
    """How many messages a group has not yet acknowledged."""
    behind = 0
    for queue in client.queues(topic):
        end = client.max_offset(queue)
        behind += end - (client.committed_offset(queue, group) or 0)
    return behind


def main(name_server: str = "127.0.0.1:9876") -> None:
    """Run the example."""
    with Client(Settings(name_server)) as client, connect(name_server) as mq:
        client.create_topic("Orders", queues=4)
        place(mq, 30)
        billed = bill(mq)
        print(f"billed {len(billed)} orders, {len(set(billed))} different ones")
        print(f"billing has {lag(client, 'Orders', 'billing')} messages left")


if __name__ == "__main__":
    main(*sys.argv[1:])
