"""Whatever anybody sends, a name server answers in words and goes on."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import (
    binary,
    dictionaries,
    integers,
    lists,
    none,
    sampled_from,
    text,
    tuples,
)

from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.registration import RegisterBrokerBody
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import dumps
from tests.examples import examples
from tests.nameserver.case import CODES, NameServerTestCase, registration_body

#: Fields that some request reads, and one that none does.
FIELDS = (
    *("namespace", "key", "value", "brokerName", "brokerAddr", "clusterName"),
    *("brokerId", "haServerAddr", "heartbeatTimeoutMillis", "enableActingMaster"),
    *("compressed", "bodyCrc32", "topic", "acceptStandardJsonOnly", "cluster"),
    *("__ZONE_NAME", "__ZONE_MODE", "other"),
)

#: Values that mean something in some of them.
VALUES = ("b1", "b2", "c1", "0", "1", "-1", "true", "false", "T1", "", "9" * 30)

BODIES = (
    b"",
    b"{}",
    b"null",
    b"[]",
    b"enableTopicList=false",
    b"kvConfigPath=/x",
    dumps(DataVersion()),
    b'{"queueDatas":[{"brokerName":"b1"},{}]}',
    registration_body().encode(),
    registration_body().encode(compressed=True),
    RegisterBrokerBody().encode(),
)

requests = tuples(
    sampled_from(sorted(CODES)),
    none() | dictionaries(sampled_from(FIELDS), sampled_from(VALUES) | text()),
    sampled_from(BODIES) | binary(),
    sampled_from((0, 36, 37, 400, 401, 412, 413, 479)),
)


class NonsenseTests(NameServerTestCase):
    """Requests made of known and of random pieces."""

    @examples()
    @given(lists(requests, min_size=1, max_size=8), integers(0, 130))
    def test_requests(
        self,
        several: list[tuple[int, dict[str, str] | None, bytes, int]],
        seconds: int,
    ) -> None:
        """Each is answered; then the table can still be shown to everybody."""
        connection = RecordedConnection()
        for code, ext, body, version in several:
            self.ask(code, ext, body, version, connection)
        self.clock.advance(seconds)
        connection.close()
        self.clock.advance(0)
        for topic in list(self.nameserver.routes.topics):
            self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        self.assertEqual(self.ask(RequestCode.GET_BROKER_CLUSTER_INFO).code, 0)
        self.assertEqual(self.ask(RequestCode.GET_NAMESRV_CONFIG).code, 0)
