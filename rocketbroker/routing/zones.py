# -*- test-case-name: tests.routing.test_zones -*-
"""Routes for clients that stay in their zone: C{docs/facts/namesrv.md} 13."""

from __future__ import annotations

import attrs

from rocketbroker.routing.registration import MASTER
from rocketbroker.wire.bodies.routes import TopicRouteData


def in_zone(route: TopicRouteData, zone: str) -> TopicRouteData:
    """Of a route, the brokers of a zone and those without a master.

    @param zone: the zone's name; case does not count.
    """
    wanted = zone.lower()
    kept = [
        broker
        for broker in route.broker_datas
        if MASTER not in broker.broker_addrs
        or (broker.zone_name is not None and broker.zone_name.lower() == wanted)
    ]
    names = {broker.broker_name for broker in kept}
    dropped = {
        address
        for broker in route.broker_datas
        if broker.broker_name not in names
        for address in broker.broker_addrs.values()
    }
    return attrs.evolve(
        route,
        queue_datas=[one for one in route.queue_datas if one.broker_name in names],
        broker_datas=kept,
        filter_server_table={
            address: servers
            for address, servers in route.filter_server_table.items()
            if address not in dropped
        },
    )
