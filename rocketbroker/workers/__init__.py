# -*- test-case-name: tests.workers -*-
"""Workers of one broker: processes that own the connections of its clients.

The I{owner} is the broker. It listens, and hands each accepted socket to a worker with
SCM_RIGHTS. A worker reads from the sockets, cuts frames, and passes the requests to the
owner over a I{link}: one Unix socket for all connections of the worker. In the owner
each of these connections is one of the hub's, like any other, with a I{relayed socket}
in place of the system's: so responders, limits and counters do not know the difference,
and the owner can ask clients, too.

A worker I{joins} the owner's store (L{rocketbroker.store.sharing}), appends ordinary
sends itself, reads for ordinary pulls, and answers both; so the owner's core is not the
limit of what a broker takes and gives. All other requests are relayed.

What a worker may append
========================

A send that would go the hot way in the owner (L{rocketbroker.broker.send.hot_sends}),
to a queue that the owner has named. Everything else is relayed: topics that are not
known here, retries, delays, timers, transactions, batches for batch queues, headers
that are not JSON, what is too long; and I{all} sends while the answer has to wait for
the disk or for copies (SYNC_FLUSH, SYNC_MASTER with more than one copy), while LMQs or
access control are on, if a plug-in is around the store, on a slave, and while the store
refuses appends or is too far behind the disk. Traces are ordinary messages.

Who owns what, and how a worker learns of a change. "Version" is the word VERSION of the
shared positions: the owner changes it before a change takes effect, and tells all
anew (ALLOW); a worker looks at it once in each turn, and again under the append lock.
From the change until the next ALLOW it relays all sends::

    ====================  ========  ===================  ===============================
    state                 owner     learned by           what a worker does meanwhile
    ====================  ========  ===================  ===============================
    topics, permissions,  owner     ASK, QUEUE for each  relays sends to queues that it
    static topics                   queue; version       does not know
    running settings,     owner     ALLOW; version       relays
    flush mode, role
    bit maps of filters   owner     not at all: they are made when it dispatches
    access control        owner     not supported yet; with it nothing is allowed
    next queue offsets    shared    words, under the append lock
    end of the log        shared    the word PUBLISHED, under the append lock
    segments              owner     the directory, when PUBLISHED is in a new one; a
                                    worker without room relays that turn
    flushed position      owner     the word FLUSHED, once in a turn
    statistics            owner     APPENDED tells it, at most once in 2 ms; also
                                    dispatch, held pulls and slaves wait for that word
    ====================  ========  ===================  ===============================

The version has one number for all, and each change of any topic drops what workers know
of all topics. That costs one relayed send for each queue and worker; a version for each
topic would cost a look-up for each send.

Which pulls a worker may answer
===============================

A pull that would go the hot way in the owner (L{rocketbroker.broker.pull.pull}), by a
I{route} that the owner has told: for one group, topic, queue and subscription. What is
found in memory is answered; a pull that waits for the next message waits here. All else
is relayed: routes that are not known here, request 361, pulls of proxies, broadcasting
groups and static topics, what is cold, damaged, or outside of the queue, pulls that
wait with a filter on properties, queues with an extension; and I{all} pulls while
access control or C{rejectPullConsumerEnable} is on, if a plug-in is around the store,
on a slave, and while entries of queues have no room on the disk.

These have a version of their own, READ_VERSION: it changes with each rebalancing, and
workers are told anew 50 ms later, so that many changes cost as much as one. A worker
looks at it once in each turn, and again behind each read. From the change until the
next PULLS it relays all pulls::

    ====================  ========  ===================  ===============================
    state                 owner     learned by           what a worker does meanwhile
    ====================  ========  ===================  ===============================
    topics, permissions,  owner     ASK_PULL, ROUTE for  relays pulls without a route
    groups,                         each queue; version
    subscriptions
    filters               owner     the expression, by   relays
                                    ROUTE; version
    running settings,     owner     PULLS; version       relays
    role
    resets of offsets     owner     version; no ROUTE    relays; WAKE lets all pulls
                                    while one is         that wait ask again
                                    pending
    files, which a topic  owner     version              forgets all that it knows by
    that is deleted and                                  name, and looks for them again
    made again has anew
    consumer offsets      owner     not at all           PULLED tells where groups pull
                                                         next and what pulls commit,
                                                         each 0.1 s, and before anything
                                                         is relayed that came later; the
                                                         owner drops those in a topic
                                                         that was deleted since
    held pulls            worker    WAIT tells where;    at the end of the wait a route
                                    WAKE comes once per  that does not hold any more
                                    turn when that       lets the pull ask again
                                    queue has grown
    ends of queues        shared    the words MIN, MAX
    ====================  ========  ===================  ===============================

Order
=====

Sends of one connection are stored in the order in which they came, whoever appends
them: L{relay} says how. A worker that dies leaves what it has answered in the log, and
an append that it has not finished to the owner, which undoes it. One that hangs in an
append is killed: L{lock_watch}.

The modules, in the order in which a request meets them:

  - C{link_frames}: the frames of a link, as bytes
  - C{link}: frames and descriptors through the socket of a link
  - C{relay}: the worker's end of a link: clients' bytes to the owner, and back;
    C{relayed_client}: the connection of one client there
  - C{worker_sends}: the sends that the worker appends itself
  - C{approvals}: which these are, as the owner decides it; C{link_messages}: what
    the two say of them
  - C{worker_pulls}: the pulls that the worker answers itself; C{pull_approvals}: which
    these are, as the owner decides it
  - C{relayed_socket}: the socket of one connection, in the owner
  - C{owner_link}: the owner's end of a link: all such sockets of one worker
  - C{worker}: a worker, from its start to its end
  - C{workers}: all workers of an owner: which gets a connection, restarts, the stop
  - C{lock_watch}: kills a worker that hangs with the append lock
  - C{hello}: what an owner and a worker say of themselves
"""
