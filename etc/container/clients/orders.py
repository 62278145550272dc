"""Send orders, and wait for an invoice for each of them.

The other program, Invoices.java, writes the invoices. compose.yaml starts both.
"""

import sys

from rocketbroker.blocking import connect

#: How many orders are sent.
COUNT = 10

#: So long the next invoice may take, in seconds.
WAIT = 300


def main(name_server="127.0.0.1:9876"):
    """Send, then receive until no order is without an invoice."""
    with connect(name_server) as mq:
        mq.client.create_topic("Orders", queues=4)
        mq.client.create_topic("Invoices", queues=1)
        open_orders = {f"order-{number}" for number in range(COUNT)}
        for key in sorted(open_orders):
            mq.send("Orders", f"goods of {key}", tag="paid", keys=[key])
        for invoice in mq.receive("Invoices", group="shop", wait=WAIT):
            print(invoice.text, flush=True)
            open_orders.difference_update(invoice.keys)
            invoice.ack()
            if not open_orders:
                break
    if open_orders:
        sys.exit(f"without an invoice: {', '.join(sorted(open_orders))}")
    print(f"{COUNT} orders, each with an invoice")


if __name__ == "__main__":
    main(*sys.argv[1:])
