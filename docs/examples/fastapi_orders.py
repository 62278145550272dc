"""Orders over HTTP: one request stores an order, a listener beside it writes the bill.

Start a broker, then this application::

    rocketbroker standalone --temporary
    uvicorn --app-dir docs/examples fastapi_orders:app
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from rocketbroker.aio import ReceivedMessage, connect

#: ROCKETMQ_NAMESRV says where the name servers are, else they are on this machine.
mq = connect()

#: A data base, that is: each process of the server has a dictionary of its own.
bills: dict[str, str] = {}


class Order(BaseModel):
    """What is ordered."""

    number: str
    goods: str


@mq.on("Orders", group="billing", concurrency=20, start="earliest")
async def bill(message: ReceivedMessage) -> None:
    """Write a bill; an error here has the order come again later."""
    bills[message.keys[0]] = f"one {message.text}"


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Listen as long as the server runs."""
    async with mq:
        listening = asyncio.create_task(mq.run())
        yield
        mq.stop()  # what is in hand is finished
        await listening


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=202)
async def take(order: Order) -> dict[str, str]:
    """Take an order: it is stored when this returns."""
    result = await mq.send("Orders", order.goods, keys=[order.number])
    return {"message": result.message_id}


@app.get("/orders/{number}/bill")
async def show(number: str) -> str:
    """Show a bill."""
    if number not in bills:
        raise HTTPException(404, "it is not written yet")
    return bills[number]
