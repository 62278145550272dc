"use strict";

const assert = require("node:assert");
const { after, before, test } = require("node:test");
const { RocketMQ } = require("./rocketmq.js");

let broker;

before(async () => {
  broker = await RocketMQ.start();
});
after(() => broker.stop());

test("an order is sent", () => {
  const orders = broker.topic("Orders");
  broker.run("message", "send", orders, "book", "--tag=paid"); // the program under test
  const [order, ...others] = broker.messages(orders);
  assert.deepStrictEqual([order.body, order.tag, others], ["book", "paid", []]);
});

test("each topic is a new one", () => {
  assert.deepStrictEqual(broker.messages(broker.topic("Orders")), []);
});
