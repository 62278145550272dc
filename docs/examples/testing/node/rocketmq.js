// A RocketMQ broker for the tests of Node.js: `rocketbroker standalone` as a child process.
//
// It ends with this process, also when that is killed. The variable ROCKETBROKER says where the
// program is, unless it is in the path.
"use strict";

const { execFileSync, spawn } = require("node:child_process");
const { createInterface } = require("node:readline");

const PROGRAM = process.env.ROCKETBROKER || "rocketbroker";

class RocketMQ {
  #child;
  #number = 0;
  #log = "";

  /** Start it and wait until it is ready. */
  static async start() {
    const broker = new RocketMQ();
    await broker.#start();
    return broker;
  }

  async #start() {
    this.#child = spawn(PROGRAM, [
      ...["standalone", "--temporary", "--exit-with-parent", "--output=json"],
      ...["--namesrv-port=0", "--port=0", "--metrics-port=off"],
      ...["--set=longPollingEnable=false", "--set=shortPollingTimeMills=100"],
    ]);
    this.#child.stderr.setEncoding("utf8").on("data", (words) => (this.#log += words));
    const ended = new Promise((_, reject) => {
      this.#child.on("error", reject);
      this.#child.on("close", (code) => reject(new Error(`exit status ${code}: ${this.#log}`)));
    });
    ended.catch(() => {}); // It ends some time; before it is ready that is an error.
    const lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]();
    const ready = await Promise.race([lines.next(), ended]);
    if (ready.done) await ended;
    /** The address that the program under test is given. */
    this.nameServer = JSON.parse(ready.value).namesrv;
  }

  /** A topic that no other test has: its whole name. */
  topic(name, queues = 1) {
    const topic = this.group(name);
    this.run("topic", "create", topic, `--queues=${queues}`);
    return topic;
  }

  /** A name that no other test has, of a group. */
  group(name) {
    return `${name}-${++this.#number}`;
  }

  /** All messages that a topic has now, with topic, body, tag, keys and more. */
  messages(topic) {
    const lines = this.run("message", "receive", topic, "--output=jsonl").split("\n");
    return lines.filter((line) => line).map((line) => JSON.parse(line));
  }

  /** What the command line says: `run("topic", "show", topic)`. */
  run(...words) {
    const env = { ...process.env, ROCKETMQ_NAMESRV: this.nameServer };
    return execFileSync(PROGRAM, words, { env, encoding: "utf8" });
  }

  /** What it has logged. */
  get log() {
    return this.#log;
  }

  /** Stop it. */
  async stop() {
    const closed = new Promise((resolve) => this.#child.on("close", resolve));
    this.#child.kill();
    await closed;
  }
}

module.exports = { RocketMQ };
