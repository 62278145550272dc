# -*- test-case-name: tests.workers -*-
"""Workers of one broker: processes that own the connections of its clients.

The I{owner} is the broker. It listens, and hands each accepted socket to a worker with
SCM_RIGHTS. A worker reads from the sockets, cuts frames, and passes the requests to the
owner over a I{link}: one Unix socket for all connections of the worker. In the owner
each of these connections is one of the hub's, like any other, with a I{relayed socket}
in place of the system's: so responders, limits and counters do not know the difference,
and the owner can ask clients, too.

For now all requests are relayed: a worker has no store. What it will serve itself goes
into its table of responders; requests that are not there are relayed.

The modules, in the order in which a request meets them:

  - C{link_frames}: the frames of a link, as bytes
  - C{link}: frames and descriptors through the socket of a link
  - C{relay}: the worker's end of a link: clients' bytes to the owner, and back
  - C{relayed_socket}: the socket of one connection, in the owner
  - C{owner_link}: the owner's end of a link: all such sockets of one worker
  - C{worker}: a worker, from its start to its end
  - C{workers}: all workers of an owner: which gets a connection, restarts, the stop
  - C{start}: what an owner and a worker say of themselves
"""
