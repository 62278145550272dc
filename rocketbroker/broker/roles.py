# -*- test-case-name: tests.broker.test_services -*-
"""The roles of a broker within its group, and the role that it begins with.

What becomes of delayed messages, timers and POP in each role::

    ===================  =================  =====================  ===================
    work                 master             slave                  acting master
    ===================  =================  =====================  ===================
    delayed messages     are delivered      --                     go elsewhere
    timers enter         all                as the master's have   all
    timers are due       are delivered      --                     go elsewhere
    how far timers are   --                 is copied (60, 61)     --
    pops                 are answered       are refused            are answered
    check points, acks   are stored         --                     are kept elsewhere
    revive               into retry topics  --                     elsewhere
    ===================  =================  =====================  ===================

What another group keeps it gives out itself; it asks here for the messages. Which
loops these are, and all others, L{rocketbroker.broker.services} says.

C{docs/facts/ha.md} 4, 11, 13.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from rocketbroker.config.broker_settings import BrokerSettings


class Role(Enum):
    """What a broker is to the others of its name.

    An acting master is the slave that does the work of a master that is gone; it takes
    no sends. An isolated broker is a master that has just started, and takes over what
    was done without it before name servers hear of it.
    """

    ISOLATED = "isolated"
    MASTER = "master"
    SLAVE = "slave"
    ACTING_MASTER = "acting master"


#: The roles of all brokers; of those that store messages of their own; of those that do
#: the same in a master's place, and store elsewhere; of those that follow a master.
EVERY: Final = frozenset(Role)
MASTERS: Final = frozenset({Role.MASTER})
ACTING: Final = frozenset({Role.ACTING_MASTER})
SLAVES: Final = frozenset({Role.SLAVE, Role.ACTING_MASTER})


def starts_isolated(settings: BrokerSettings) -> bool:
    """Whether a broker with these settings is not registered before it has looked for
    the others of its group (C{docs/facts/ha.md} 13)."""
    return (
        settings.broker.enable_slave_acting_master
        and settings.store.total_replicas > 1
        and not settings.broker.skip_pre_online
    )


def role_of(settings: BrokerSettings) -> Role:
    """The role that a broker with these settings begins with."""
    if settings.store.is_slave:
        return Role.SLAVE
    return Role.ISOLATED if starts_isolated(settings) else Role.MASTER
