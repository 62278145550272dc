# -*- test-case-name: tests.client -*-
"""Producers and consumers: the logic once, whatever drives it.

Programs use one of the faces, L{rocketbroker.aio}, L{rocketbroker.threads} or
L{rocketbroker.deferred}, which differ in async, await and Deferred only. Here is what
they share. Nothing here knows asyncio or Twisted, but L{rocketbroker.client.runtimes}.

The ground, and how coroutines wait:

  - L{runtime}: clock, futures, tasks, connections, as an
    interface: C{connect(host, port, seconds, events)}, C{future()},
    C{spawn(coroutine)}, C{call_later(seconds, callback)}, C{sleep(seconds)},
    C{monotonic()}.
  - L{waits}: signals, and tasks that end together.
  - L{settings}, L{errors}.
  - L{observers}: are told of sends and of what becomes of
    messages.

The network:

  - L{connection}: one server, requests by opaque:
    C{await request(command, seconds)}, C{await oneway(command)}.
  - L{connections}: one for each address; requests of
    servers by code: C{watch(code, taker)}.
  - L{routes}: C{await view(topic)}, C{await
    write_queues(topic)}; what is known stays while name servers are away.
  - L{requests}: what is asked of brokers about offsets,
    members, locks, and messages that are sent back.

One client, as brokers see it:

  - L{instance}: a client id with its connections, its
    routes, its groups and its timers.
  - L{namespace}: names as users say them, and as brokers know them.
  - L{membership}: heartbeats to all brokers: C{await
    beat()}; farewells: C{await leave(group)}.

Sending:

  - L{queue_choice}: pure: the next queue in turn, not
    of the broker that failed, not of one that was slow.
  - L{back_pressure}: so many sends under way; the others wait.
  - L{accumulator}: messages sent one by one, gathered into
    batches.
  - L{detector}: asks brokers that were out of reach.
  - L{outages}: what is away, said once.
  - L{producer}: C{await send(message)}, batches, oneway;
    tries again until the time is over.
  - L{send_stream}: a stream of sends, several under way; results
    in their order.
  - L{transactions}: half messages: C{await
    begin(message)}, their ends, and the broker's questions.
  - L{replies}: C{await ask(message)}: a message that
    another client answers, and our answers.
  - L{queries}: messages by a key or an id.

Receiving, from the broker to the user:

  - L{subscription}: pure: what a group wants of a
    topic, as heartbeats and pulls carry it; whether a message is wanted.
  - L{rebalance}: which queues are ours: C{await
    round()}.
  - L{assignment}: the same, as brokers say it; they also let us pop.
  - L{process_queue}: pure: the messages of one queue
    that are here: waiting, given out, settled; the offset that may be committed.
  - L{pull_loop}: fills one process queue, by
    L{pull}s.
  - L{inbox}: which message is next: queues in turn; in order
    one message of a queue at a time.
  - L{offsets}: where a group begins and goes on: at the
    broker, or in a file (L{local_offsets}).
  - L{locks}: queues of ordered consumers.
  - L{consumer}: all of that for one group: C{await
    start()}, C{await next()}, C{await close()}.
  - L{handlings}: messages in hand, for observers.
  - L{served}: what brokers ask a member: resets, status.
  - L{pop_consumer}: the same for a group that pops:
    no queue has an owner; L{pop}: its requests, and handles.
  - L{lite_pull}: a consumer that polls and seeks.
  - L{received}: a message as the user has it: C{await
    ack()}, C{retry()}, C{dead_letter()}, C{reply()}.

What users see:

  - L{session}: the simple face: C{send}, C{consumer},
    C{on}, C{run}, C{stop}; L{options}: what it takes by
    name; L{arguments}: what cannot be meant; L{options_page}:
    C{docs/client-options.rst}.
  - L{metrics}: for Prometheus, in the user's registry; L{trace}:
    message traces in RocketMQ's form; L{otel}: spans.
  - L{runtimes}: asyncio and Twisted.
"""
