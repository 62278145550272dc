"""Sends that workers append themselves: what they are, in which order they are stored,
and what becomes of them when something changes."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import MessageIllegal
from rocketbroker.records import batches
from rocketbroker.remoting.hubconnection import HubConnection
from rocketbroker.store.interfaces import Arrival
from rocketbroker.store.message_store import Store
from rocketbroker.store.running_flags import DISK_FULL
from rocketbroker.store.shared_positions import in_words
from rocketbroker.store.sharing.append_lock import APPEND_NAME
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.bodies.mappings import TopicQueueMappingDetail
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from rocketbroker.workers.link_frames import Kind
from rocketbroker.workers.owner_link import WorkerLink
from rocketbroker.workers.relay import OwnerRelay
from tests.broker.rig import UNIQUE, fields_for, send_ext
from tests.store.sharing.joined import Killed, Mortal
from tests.workers.sendrig import SEND, SendClient, SendRig

DELAYED = f"UNIQ_KEY\x01{UNIQUE}\x02DELAY\x013\x02"


class ThenChanged:
    """A relay behind each of whose readings the owner changes what it has told."""

    def __init__(self, relay: OwnerRelay, rig: SendRig) -> None:
        self._relay = relay
        self._rig = rig

    def frames(self, connection: HubConnection, data: bytes) -> int:
        """Take frames, then change."""
        taken = self._relay.frames(connection, data)
        self._rig.approvals.changed()
        return taken

    def proxy_header(self, connection: HubConnection, header: bytes) -> None:
        """None comes."""

    def garbage(self, connection: HubConnection, data: bytes) -> None:
        """None comes."""


class Undispatched:
    """A store with a mistake in its dispatch, while it is C{broken}."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.broken = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def dispatch(self, most: int) -> list[Arrival]:
        """A step, or the mistake."""
        assert not self.broken or 1 // 0
        return self._store.dispatch(most)


class OwnSendsCase(SynchronousTestCase):
    """A broker with two workers."""

    def rig(self, **settings: str) -> SendRig:
        """It, and a topic of which workers know queue 0."""
        rig = SendRig(2, **settings)
        self.addCleanup(rig.end)
        return rig

    def known(self, rig: SendRig) -> list[SendClient]:
        """A client of each worker, both of which know queue 0 of topic T."""
        clients = [rig.client(), rig.client()]
        for client in clients:
            for _ in range(3):
                answer = client.sent(b"first")
                self.assertEqual(answer.code, 0, answer.remark)
                rig.later()
        return clients


class ServedTests(OwnSendsCase):
    """What they append."""

    def setUp(self) -> None:
        """Two clients."""
        self.r = self.rig()
        self.one, self.two = self.known(self.r)

    def test_appended(self) -> None:
        """Ordinary sends are appended and answered by the workers, and stored in one
        order with all others."""
        before = self.r.appended
        for number in range(10):
            answer = self.one.sent(b"a%d" % number)
            self.assertEqual(answer.code, 0)
            self.two.sent(b"b%d" % number)
        self.assertEqual(self.r.appended, before + 20)
        bodies = self.r.bodies()
        wanted = [b"%c%d" % (letter, n) for n in range(10) for letter in b"ab"]
        self.assertEqual(bodies[6:], wanted)

    def test_answer(self) -> None:
        """Their answers are those of the owner."""
        own = self.one.sent(b"own")
        properties = f"UNIQ_KEY\x01{UNIQUE}\x02WAIT\x01true\x02TRACE_ON\x01true\x02"
        opaque = self.one.ask(SEND, send_ext(properties=properties), b"relayed")
        self.r.step()
        relayed = self.one.answers[opaque]
        assert own.ext is not None
        assert relayed.ext is not None
        self.assertEqual(own.ext.keys(), relayed.ext.keys())
        for key in own.ext.keys() - {"queueOffset", "msgId"}:
            self.assertEqual(own.ext[key], relayed.ext[key])
        offsets = int(own.ext["queueOffset"]), int(relayed.ext["queueOffset"])
        self.assertEqual(offsets[1], offsets[0] + 1)
        last = {message.body: message for message in self.r.stored()}
        one, other = last[b"own"], last[b"relayed"]
        self.assertEqual(one.born_host, other.born_host)
        keys = one.properties.keys()
        self.assertEqual(keys, other.properties.keys())

    def test_sendBehindHeaderOfStrangerIsNotStored(self) -> None:
        """A send behind a header of the PROXY protocol waits for the owner, who closes
        the connection of whoever may not send one."""
        line = b"PROXY TCP4 203.0.113.7 10.0.0.1 56324 10911\r\n"
        for proxies, stored in (("", False), ("1.2.3.0/24", True)):
            limits = attrs.evolve(self.r.group.limits, proxies=proxies)
            self.r.group.limits = limits
            before, client = self.r.bodies(), self.r.client()
            client.socket.sendall(line)
            client.send(b"behind")
            self.r.step()
            self.assertEqual(self.r.bodies()[len(before) :], [b"behind"] * stored)
            self.assertEqual(len(client.answers), stored)

    def test_batch(self) -> None:
        """So are batches."""
        before = self.r.appended
        body = batches.encode([(0, b"x", b""), (0, b"y", b"")])
        ext = send_ext(m="true")
        opaque = self.one.ask(320, ext, body)
        self.r.step()
        answer = self.one.answers[opaque]
        self.assertEqual(answer.code, 0, answer.remark)
        self.assertEqual((answer.ext or {})["msgId"].count(","), 1)
        self.assertEqual(self.r.appended, before + 1)
        self.assertEqual(self.r.bodies()[-2:], [b"x", b"y"])

    def test_longNames(self) -> None:
        """So are sends with request 10, in order with others, and counted as such."""
        before = self.r.appended
        ext = fields_for(10, send_ext())
        opaques = []
        for number in range(6):
            body, code = b"%d" % number, (SEND, 10)[number % 2]
            opaques.append(self.one.ask(code, fields_for(code, send_ext()), body))
        self.r.step()
        self.assertEqual(self.r.appended, before + 6)
        self.assertEqual(self.r.bodies()[-6:], [b"%d" % n for n in range(6)])
        answers = [self.one.answers[opaque] for opaque in opaques]
        self.assertEqual([answer.code for answer in answers], [0] * 6)
        fields = {tuple(answer.ext or ()) for answer in answers}
        self.assertEqual(len(fields), 1)
        self.assertEqual(self.r.broker.main.latencies[10, 0].count, 3)
        self.assertEqual(self.r.broker.main.latencies[SEND, 0].count, 9)
        self.one.ask(10, {**ext, "properties": DELAYED}, b"later")
        self.r.step()
        self.assertEqual(self.r.appended, before + 6)

    def test_notDispatched(self) -> None:
        """A worker goes on when what it has appended cannot be dispatched."""
        stores: list[Undispatched] = []

        def wrap(store: Store) -> Undispatched:
            stores.append(Undispatched(store))
            return stores[0]

        r = SendRig(2, None, in_words, wrap)
        self.addCleanup(r.end)
        one, _ = self.known(r)
        stores[0].broken = True
        self.assertEqual(one.sent(b"a").code, 0)
        r.later()
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        stores[0].broken = False
        self.assertEqual(one.sent(b"b").code, 0)
        self.assertEqual(r.bodies()[-2:], [b"a", b"b"])

    def test_counted(self) -> None:
        """The owner counts them as its own."""
        before = self.r.store.appended_messages
        for number in range(7):
            self.one.sent(b"%d" % number)
        self.r.later()
        self.assertEqual(self.r.store.appended_messages, before + 7)
        counters = self.r.broker.send.sending.counters()
        counts = [each for each in counters if each.topic == "T"]
        self.assertEqual(sum(each.messages for each in counts), 13)
        size = sum(each.bytes for each in counts)
        self.assertEqual(size, self.r.store.published_position)
        port, own = self.r.approvals.port_counts, self.r.appended
        self.assertEqual((port.frames_in, port.frames_out), (own, own))
        self.assertGreater(port.bytes_in, own * 200)
        latencies = self.r.broker.main.latencies[SEND, 0]
        self.assertEqual(latencies.count, 13)

    def test_oneAppend(self) -> None:
        """The sends of a turn are one append, and one word to the owner."""
        store = self.r.alive[0].own_sends._store
        assert store is not None
        before = store.appends
        for number in range(50):
            self.one.send(b"%d" % number)
        self.r.step()
        self.assertEqual(len(self.one.answers), 53)
        self.assertEqual(store.appends, before + 1)

    def test_oneway(self) -> None:
        """Oneway sends are stored and not answered."""
        request = Command(SEND, send_ext(), b"oneway", opaque=99, flag=2)
        self.one.socket.sendall(encode(request))
        self.r.step()
        self.assertNotIn(99, self.one.answers)
        self.assertEqual(self.r.bodies()[-1], b"oneway")

    def test_segmentFull(self) -> None:
        """When a segment is full the owner makes the next, and workers go on there."""
        for number in range(60):
            self.assertEqual(self.one.sent(b"%d" % number * 1000).code, 0)
            self.r.later()
        self.assertGreater(self.r.store.published_position, 65536)
        bodies = self.r.bodies()[6:]
        self.assertEqual(bodies, [b"%d" % number * 1000 for number in range(60)])
        self.assertGreater(self.r.appended, 50)

    def test_tooLong(self) -> None:
        """What is too long is the owner's to refuse, and those behind it are stored."""
        self.r.broker.running.change({"maxMessageSize": "100"})
        self.known(self.r)
        opaques = [self.one.send(body) for body in (b"a", b"b" * 101, b"c")]
        self.r.step()
        codes = [self.one.answers[opaque].code for opaque in opaques]
        self.assertEqual(codes, [0, MessageIllegal.code, 0])
        self.assertEqual(self.r.bodies()[-2:], [b"a", b"c"])


class ChangedTests(OwnSendsCase):
    """What they append by changes."""

    def test_topicDeleted(self) -> None:
        """A send to a topic that was just deleted is answered as by the owner, and the
        topic begins anew."""
        r = self.rig()
        one, two = self.known(r)
        for client in (one, two):
            client.send(b"late")
        r.broker.metadata.topics.delete("T")
        r.store.delete_topic("T")
        r.step()
        self.assertEqual(r.bodies(), [b"late", b"late"])
        self.assertEqual(one.sent(b"next").code, 0)

    def test_betweenTurnAndAppend(self) -> None:
        """What changes after a turn has taken sends and before it appends them is
        obeyed: they are relayed, in order."""
        r = self.rig()
        one, _ = self.known(r)
        worker = r.alive[0]
        before = r.appended
        for number in range(5):
            one.send(b"%d" % number)
        frames = r.broker.metadata.topics.generation
        worker.group.relay = ThenChanged(worker.relay, r)
        worker.hub.doRead()
        worker.group.relay = worker.relay
        r.step()
        self.assertEqual(r.broker.metadata.topics.generation, frames)
        self.assertEqual(r.appended, before)
        self.assertEqual(r.bodies()[-5:], [b"%d" % number for number in range(5)])
        self.assertEqual(len(one.answers), 8)

    def test_permission(self) -> None:
        """A topic that may not be written to any more is not."""
        r = self.rig()
        one, _ = self.known(r)
        config = r.broker.metadata.topics.config("T")
        assert config is not None
        r.broker.metadata.topics.put([attrs.evolve(config, write_queue_nums=0)])
        one.send(b"x")
        r.step()
        r.broker.metadata.topics.delete("T")
        r.later()
        self.assertEqual(r.alive[0].own_sends._hot.topics(), [])

    def test_notAllowed(self) -> None:
        """Where a rule of the owner's stands between a send and its answer, all are
        relayed."""
        for changes in (
            {"flushDiskType": "SYNC_FLUSH"},
            {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2", "totalReplicas": "2"},
            {"enableLmq": "true"},
            {"brokerRole": "SLAVE", "brokerId": "1"},
        ):
            r = self.rig(**changes)
            self.assertFalse(r.approvals.may_append(), changes)
            client = r.client()
            client.send(b"x")
            r.later()
            self.assertEqual(r.appended, 0)
            self.assertEqual(r.alive[0].table.hot, {})

    def test_storeRefuses(self) -> None:
        """While the store takes nothing, the owner says so."""
        r = self.rig()
        one, _ = self.known(r)
        before = r.appended
        r.store.flags.set(DISK_FULL, by="test")
        # It is seen at the end of a turn of the owner's.
        r.clients[1].ask(SEND, send_ext(properties=DELAYED), b"x")
        r.step()
        self.assertNotEqual(one.sent(b"x").code, 0)
        self.assertEqual(r.appended, before)
        r.store.flags.set(DISK_FULL, on=False, by="test")
        self.known(r)
        self.assertGreater(r.appended, before)

    def test_staticTopic(self) -> None:
        """Sends to a static topic are the owner's: it knows their queues."""
        r = self.rig()
        one, _ = self.known(r)
        before = r.appended
        detail = TopicQueueMappingDetail(topic="T", bname="b", total_queues=1)
        r.broker.metadata.mappings.details["T"] = detail
        r.approvals.changed()
        for _ in range(3):
            one.sent(b"x")
            r.later()
        self.assertEqual(r.appended, before)
        self.assertEqual(r.alive[0].own_sends._hot.topics(), [])

    def test_diskBehind(self) -> None:
        """While too much is not on the disk sends are relayed, and the owner decides
        about them: here it flushes."""
        r = self.rig(rocketbrokerMaxUnflushedBytes="5000")
        one, _ = self.known(r)
        before = r.appended
        for _ in range(20):
            self.assertEqual(one.sent(b"x" * 1000).code, 0)
        self.assertLess(before, r.appended)
        self.assertLess(r.appended, before + 20)

    def test_stop(self) -> None:
        """When the owner begins to stop, all are relayed."""
        r = self.rig()
        one, _ = self.known(r)
        before = r.appended
        r.approvals.stop()
        self.assertEqual(one.sent(b"x").code, 0)
        self.assertEqual(r.appended, before)

    def test_askedAgain(self) -> None:
        """Queues that are not approved are asked for again, once in a while."""
        r = self.rig()
        client = r.client()
        client.sent(b"x")
        r.approvals.changed()
        r.later()
        told: list[bytes] = []
        link = r.workers.slots[0].link
        assert link is not None
        hears = link.hears

        def without_asks(link: WorkerLink, kind: int, payload: bytes) -> None:
            if kind == Kind.ASK:
                told.append(payload)
            else:
                assert hears is not None
                hears(link, kind, payload)

        link.hears = without_asks
        for _ in range(5):
            client.sent(b"x")
        self.assertEqual(told, [b'["T",0]'])
        r.step(1.1)
        client.sent(b"x")
        self.assertEqual(told, [b'["T",0]'] * 2)
        link.hears = hears


class KilledTests(OwnSendsCase):
    """A worker that dies in an append."""

    def test_anyWrite(self) -> None:
        """Nothing that was answered is lost, offsets are dense, and another worker goes
        on."""
        count = 0
        while self.die_at(count):
            count += 3
        self.assertGreater(count, 10)

    def die_at(self, left: int) -> bool:
        """Let it die before a write; whether it has."""
        disk = MemoryDisk()
        mortal = Mortal(disk)
        r = SendRig(2, disk, mortal.as_words)
        self.addCleanup(r.end)
        one, two = self.known(r)
        process = r.processes[0]
        for number in range(3):
            one.send(b"one%d" % number)
        died = False
        mortal.begin(left)
        try:
            process.worker.hub.doRead()
        except Killed:
            died = True
        mortal.end()
        if died:
            process.kill()
        r.step()
        r.later()
        self.assertEqual(two.sent(b"two").code, 0)
        bodies = r.bodies()[6:]
        self.assertIn(bodies, ([b"two"], [b"one0", b"one1", b"one2", b"two"]))
        if not died:
            self.assertEqual(len(bodies), 4)
        return died


class HeldLockTests(OwnSendsCase):
    """A process that hangs with the append lock."""

    def test_clientsAreAnsweredBusy(self) -> None:
        """Sends of workers are left to the owner, which answers SYSTEM_BUSY; when the
        lock is free they are stored by workers again, and none is there twice."""
        r = self.rig()
        one, two = self.known(r)
        before, appended = len(r.bodies()), r.appended
        file = r.disk.open(f"/store/{APPEND_NAME}")
        self.assertTrue(file.lock_alone(0))
        for client in (one, two):
            answer = client.sent(b"refused")
            self.assertEqual(answer.code, ResponseCode.SYSTEM_BUSY)
        file.close()
        self.assertEqual(one.sent(b"stored").code, 0)
        self.assertEqual(r.bodies()[before:], [b"stored"])
        self.assertEqual(r.appended, appended + 1)


class OrderTests(OwnSendsCase):
    """The order of what a connection sends."""

    def test_noRoom(self) -> None:
        """What has no room in the segment is relayed, and so is what comes behind it,
        though that has room, until it is stored."""
        r = self.rig()
        one, _ = self.known(r)
        for _ in range(5):
            one.sent(b"x" * 10_000)
        before, worker = r.appended, r.alive[0]
        for body in (b"l" * 20_000, b"small"):
            one.send(body)
            worker.hub.doRead()
        self.assertEqual(r.appended, before)
        r.step()
        self.assertEqual(r.bodies()[-2:], [b"l" * 20_000, b"small"])

    def test_ownerWaits(self) -> None:
        """As long as the owner has not served what was relayed, nothing is appended
        that comes behind it."""
        r = self.rig()
        one, _ = self.known(r)
        link = r.workers.slots[0].link
        assert link is not None
        (sock,) = link.sockets.values()
        assert sock.connection is not None
        # Congested, say; the worker is not told yet.
        sock.connection.halted = True
        before = r.appended
        special = f"UNIQ_KEY\x01{UNIQUE}\x02TRACE_ON\x01true\x02"
        one.ask(SEND, send_ext(properties=special), b"first")
        worker = r.alive[0]
        worker.hub.turn()
        r.hub.turn()
        worker.hub.turn()
        sock.connection.halted = False
        one.send(b"second")
        worker.hub.turn()
        self.assertEqual(r.appended, before)
        r.step()
        self.assertEqual(r.bodies()[-2:], [b"first", b"second"])

    @settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.integers(0, 1),
                st.sampled_from(
                    ["send", "send", "send", "special", "new", "step", "change", "turn"]
                ),
            ),
            max_size=60,
        )
    )
    def test_order(self, actions: list[tuple[int, str]]) -> None:
        """Whatever is appended here or there, and whatever changes meanwhile, each
        queue has what a connection has sent to it in order, and nothing twice."""
        r = SendRig()
        clients = self.known(r)
        sent: list[list[bytes]] = [[], []]
        opaques: list[list[int]] = [[], []]
        special = f"UNIQ_KEY\x01{UNIQUE}\x02TRACE_ON\x01true\x02"
        for number, (at, action) in enumerate(actions):
            client, body = clients[at], b"%d:%d" % (at, number)
            if action == "send":
                opaques[at].append(client.send(body))
                sent[at].append(body)
            elif action == "special":
                ext = send_ext(properties=special)
                opaques[at].append(client.ask(SEND, ext, body))
                sent[at].append(body)
            elif action == "new":
                client.send(body, f"N{number}")
            elif action == "change":
                r.approvals.changed()
            elif action == "turn":
                for worker in r.alive:
                    worker.hub.turn()
            else:
                r.step()
        r.later()
        bodies = r.bodies()[6:]
        for at in (0, 1):
            mine = [body for body in bodies if body.startswith(b"%d:" % at)]
            self.assertEqual(mine, sent[at])
            codes = {clients[at].answers[opaque].code for opaque in opaques[at]}
            self.assertLessEqual(codes, {0})
        r.end()
