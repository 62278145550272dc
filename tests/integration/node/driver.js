'use strict';
// The official gRPC client on a lead: reads one JSON command a line, does it, answers one JSON line. It decides nothing.
// The same commands are in ../java/grpc/GrpcDriver.java.

const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');
const { ConsumeResult, FilterExpression, Producer, PushConsumer, SimpleConsumer } = require('rocketmq-client-nodejs');
const { FilterType, TransactionResolution } = require('rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb');

const say = level => (...words) => console.error(level, ...words);
const logger = { debug() {}, info: say('INFO'), warn: say('WARN'), error: say('ERROR') };
const options = { endpoints: process.argv[2], namespace: '', requestTimeout: 20000, logger };
const started = new Map();
const boxes = new Map();
const held = new Map();

function shown(message) {
  return {
    id: message.messageId,
    topic: message.topic,
    body: message.body.toString('base64'),
    tag: message.tag || null,
    keys: message.keys.join(' '),
    group: message.messageGroup || null,
    times: message.deliveryAttempt,
    born: message.bornTimestamp.getTime(),
    at: Date.now(),
    properties: Object.fromEntries(message.properties),
  };
}

function wanted(c) {
  const type = c.kind === 'SQL92' ? FilterType.SQL : FilterType.TAG;
  return new Map([[ c.topic, new FilterExpression(c.expression || '*', type) ]]);
}

async function begin(name, client) {
  await client.startup();
  started.set(name, client);
}

const commands = {
  async producer(c) {
    const asked = [];
    boxes.set(c.name, asked);
    const checker = c.checks && {
      async check(message) {
        asked.push(shown(message));
        return TransactionResolution[message.properties.get('checked')] ?? null;
      },
    };
    await begin(c.name, new Producer({ ...options, topic: c.topic, maxAttempts: c.attempts ?? 3, checker }));
  },
  async send(c) {
    const producer = started.get(c.name);
    const message = { topic: c.topic, body: Buffer.from(c.body, 'base64'), tag: c.tag };
    if (c.keys) message.keys = c.keys.split(' ');
    if (c.group) message.messageGroup = c.group;
    if (c.delayMs) message.deliveryTimestamp = new Date(Date.now() + c.delayMs);
    if (c.properties) message.properties = new Map(Object.entries(c.properties));
    let receipt;
    if (c.local) {
      const transaction = producer.beginTransaction();
      receipt = await producer.send(message, transaction);
      if (c.local === 'COMMIT') await transaction.commit();
      if (c.local === 'ROLLBACK') await transaction.rollback();
    } else {
      receipt = await producer.send(message);
    }
    return { id: receipt.messageId, handle: receipt.recallHandle };
  },
  async recall(c) {
    return (await started.get(c.name).recallMessage(c.topic, c.handle)).messageId;
  },
  async push(c) {
    const box = [];
    boxes.set(c.name, box);
    const messageListener = {
      async consume(message) {
        box.push(shown(message));
        const isBad = message.properties.has('bad') && message.deliveryAttempt <= (c.fails ?? 0);
        return isBad ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
      },
    };
    await begin(c.name, new PushConsumer({ ...options, consumerGroup: c.group, subscriptions: wanted(c), messageListener }));
  },
  async received(c) {
    const box = boxes.get(c.name);
    const end = Date.now() + (c.timeoutMs ?? 0);
    while (box.length < (c.atLeast ?? 0) && Date.now() < end) await sleep(5);
    return box;
  },
  async simple(c) {
    const words = { consumerGroup: c.group, subscriptions: wanted(c), awaitDuration: c.awaitMs ?? 5000 };
    await begin(c.name, new SimpleConsumer({ ...options, ...words }));
  },
  async receive(c) {
    const found = await started.get(c.name).receive(c.most ?? 16, c.invisibleMs ?? 15000);
    for (const message of found) held.set(message.messageId, message);
    return found.map(shown);
  },
  async ack(c) {
    await started.get(c.name).ack(held.get(c.id));
    held.delete(c.id);
  },
  async invisible(c) {
    await started.get(c.name).changeInvisibleDuration(held.get(c.id), c.ms);
  },
  async stop(c) {
    await started.get(c.name).shutdown();
    started.delete(c.name);
  },
};

async function carryOut(line) {
  try {
    const c = JSON.parse(line);
    return { ok: await commands[c.do](c) ?? null };
  } catch (problem) {
    const cause = problem.cause ?? problem;
    return { error: cause.name ?? 'Error', code: cause.code ?? 0, text: String(cause.message ?? cause) };
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await carryOut(line)) + '\n');
  }
  process.exit(0);
}

main();
