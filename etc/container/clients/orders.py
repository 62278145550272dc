"""Send orders, and wait for an invoice for each of them.

The other program, Invoices.java, writes the invoices. compose.yaml starts both.
"""

import sys

from rocketbroker.blocking import Client, Settings
from rocketbroker.threads import connect

#: How many orders are sent.
COUNT = 10

#: So long the next invoice may take, in seconds.
WAIT = 300


def main(name_server="127.0.0.1:9876"):
    """Send, then receive until no order is without an invoice."""
    with Client(Settings(name_server)) as client:
        client.create_topic("Orders", queues=4)
        client.create_topic("Invoices", queues=1)
    with connect(name_server) as mq:
        open_orders = {f"order-{number}" for number in range(COUNT)}
        for key in sorted(open_orders):
            mq.send("Orders", f"goods of {key}", tag="paid", keys=[key])
        with mq.consumer("Invoices", group="shop", start="earliest") as invoices:
            while open_orders and (invoice := invoices.next(WAIT)):
                print(invoice.text, flush=True)
                open_orders.difference_update(invoice.keys)
                invoice.ack()
    if open_orders:
        sys.exit(f"without an invoice: {', '.join(sorted(open_orders))}")
    print(f"{COUNT} orders, each with an invoice")


if __name__ == "__main__":
    main(*sys.argv[1:])
