# -*- test-case-name: tests.blocking -*-
"""A client on a plain socket, without Twisted and without threads of its own.

For Spark executors, command lines and scripts. Nothing here opens a connection before
it is asked something, and all of it can be pickled: a copy makes its own connections.
An example::

    client = Client(Settings("127.0.0.1:9876"))
    client.create_topic("Orders", queues=4)
    Producer(client).send(Message("Orders", b"one", tags="new", keys=["1"]))

    for queue in client.queues("Orders"):
        start, until = client.min_offset(queue), client.max_offset(queue)
        for chunk in Puller(client).read(queue, start, until):
            for message in messages(chunk.data):
                print(message.queue_offset, message.properties, message.body)

  - L{settings<rocketbroker.blocking.settings>}: what a client is told.
  - L{client<rocketbroker.blocking.client>}: questions about topics, queues and offsets;
    creating topics.
  - L{messages<rocketbroker.blocking.messages>}: messages to send, and what became of
    them.
  - L{producer<rocketbroker.blocking.producer>}: sending one, many, batches.
  - L{puller<rocketbroker.blocking.puller>}: one pull, or a range with several pulls in
    flight; decoding what came.
  - L{consumer<rocketbroker.blocking.consumer>}: all queues of a topic in turn, and
    where the group goes on.
  - L{routes<rocketbroker.blocking.routes>}: where topics are, from the name servers.
  - L{connections<rocketbroker.blocking.connections>},
    L{connection<rocketbroker.blocking.connection>}: one connection for each server, and
    the requests under way on it.
  - L{answers<rocketbroker.blocking.answers>}: reading answers, and whether another try
    may help.
  - L{machine<rocketbroker.blocking.machine>}: sockets, clocks and an identity, which
    tests replace.
"""
