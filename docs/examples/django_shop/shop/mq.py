"""The session with the brokers: one for each process, shared by its threads.

A server that forks its workers may import this before: nothing is opened before the
first call, and each worker has connections of its own. ROCKETMQ_NAMESRV says where the
name servers are, else they are on this machine.
"""

from rocketbroker.threads import connect

mq = connect()
