"""A shop in Django: a view sends orders, a command writes the bills.

Start a broker, then both::

    rocketbroker standalone --temporary
    python3 docs/examples/django_shop/manage.py runserver
    python3 docs/examples/django_shop/manage.py bill_orders
"""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    execute_from_command_line(sys.argv)
