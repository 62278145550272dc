# -*- test-case-name: tests.export.test_follow -*-
"""Exporting as messages come, until told to stop.

Each topic is exported by the same runs as C{export run} makes: a run begins when so
much waits that a file is full, or when the oldest message that waits has waited long
enough; it leaves a commit, or a plan that the next one carries out. Nothing is kept
between runs that cannot be asked for again, so it may be killed at any moment.

Brokers hear of it about once a second, however many topics there are: one request tells
of all queues of a topic on a broker, and topics take turns. A broker that is gone is
asked again, ever more seldom, up to a minute. Messages that are lost stop their topic,
unless that is allowed; the others go on.

Spark has no part in it: processes of this machine copy (L{ProcessCopyJobs
<rocketbroker.export.process_jobs.ProcessCopyJobs>}). Measured with 2 cores, twice, the
same plans of 100 and of 300,000 messages of 300 bytes::

    =======================================  =============  ===============
    ..                                       processes      Spark, local[2]
    =======================================  =============  ===============
    CPU up to the first commit, all in all   1.8, 2.0 s     10.0, 11.7 s
    time up to it, on a machine with a load  9.8, 16.9 s    61, 87 s
    memory (PSS) after it                    232 MiB        575 MiB
    CPU of the next 300,000 messages         2.4, 2.2 s     2.5, 3.1 s
    memory after them                        575 MiB        865 MiB
    =======================================  =============  ===============

The work costs the same, as both run the same code; the JVM costs 300 MiB and 8 s, for
scheduling that a pool of processes does as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, final

import attrs

from rocketbroker.arrow.message_identity import first_messages
from rocketbroker.errors import RocketbrokerError
from rocketbroker.export.copying import CopyJobs
from rocketbroker.export.error_text import sentence
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.planning import TARGET_BYTES
from rocketbroker.export.plans import End
from rocketbroker.export.progress import Display, Done
from rocketbroker.export.runs import DONE, FAILED, NOTHING_NEW, ExportRuns, Job, worst
from rocketbroker.export.storage import Storage
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import StreamOrigin

#: Messages wait no longer than this for a file to become full.
COMMIT_SECONDS: Final = 900.0

#: Between two questions to a broker.
LOOK_SECONDS: Final = 1.0

#: Queues are looked for this often.
DISCOVERY_SECONDS: Final = 30.0

#: The longest pause between two tries, where nothing works.
MAX_PAUSE: Final = 60.0

#: So many messages are looked at to guess how large those are that wait.
SAMPLE: Final = 32

#: How large a message is of which nothing is known.
USUAL_BYTES: Final = 1024


class Clock(Protocol):
    """Time, and waiting for it."""

    def monotonic(self) -> float:
        """Seconds, from any beginning."""

    def wall_ms(self) -> int:
        """The time, ms since 1970."""

    def sleep(self, seconds: float) -> None:
        """Wait.

        @raise KeyboardInterrupt: it is to stop.
        """


@attrs.frozen
class Pace:
    """When commits are made.

    @ivar target: when so many bytes wait, as stored.
    @ivar seconds: when a message has waited so long.
    @ivar tasks: how many files are written at once.
    """

    target: int = TARGET_BYTES
    seconds: float = COMMIT_SECONDS
    tasks: int = 1


def pause_after(failures: int) -> float:
    """Seconds before the next try, after so many that failed."""
    return min(MAX_PAUSE, LOOK_SECONDS * float(2**failures))


@final
class TopicDisplay:
    """Provides L{Display}: says of which topic something is."""

    def __init__(self, display: Display, topic: str) -> None:
        self._display = display
        self._topic = topic
        self.start = display.start
        self.stop = display.stop

    def say(self, text: str, **values: object) -> None:
        """See L{Display.say}; that nothing is new is nothing new."""
        if text != "nothing new":
            self._display.say(text, **{"topic": self._topic, **values})

    def show(self, done: Done) -> None:
        """See L{Display.show}."""
        self._display.show(done)


@final
class FollowedTopic:
    """One topic.

    @ivar status: the exit status of what has stopped it; None while it goes on.
    @ivar looked: when its broker was asked.
    @ivar not_before: when it may be exported again.
    """

    def __init__(self, topic: str, run: ExportRuns, clock: Clock, pace: Pace) -> None:
        """
        @param run: exports it.
        """
        self.topic = topic
        self.run = run
        self.status: int | None = None
        self.looked = float("-inf")
        self.not_before = float("-inf")
        self.failures = 0
        self.is_urgent = False
        self._clock = clock
        self._pace = pace
        self._discovered = float("-inf")
        self._queues: list[Queue] = []
        self._done: dict[Queue, int] = {}
        self._bounds: dict[Queue, tuple[int, int]] = {}
        self._since: float | None = None
        self._oldest_ms: int | None = None
        self._mean = float(USUAL_BYTES)
        self._sampled = 0

    def exported(self, ends: Mapping[Queue, End]) -> None:
        """Take over up to where it is exported."""
        for queue, (_, until) in self._bounds.items():
            # What a run did not take of it, it does not want: it is before --since.
            self._done[queue] = max(self._done.get(queue, 0), until)
        for queue, end in ends.items():
            if queue.topic == self.topic:
                self._done[queue] = end.offset
        self._since = self._oldest_ms = None
        self._sampled = 0
        self.is_urgent = False

    def look(self, origin: StreamOrigin) -> None:
        """Ask its brokers what there is.

        @raise RocketbrokerError: they do not answer.
        """
        now = self.looked = self._clock.monotonic()
        if now >= self._discovered + DISCOVERY_SECONDS:
            self._queues = origin.queues(self.topic)
            self._discovered = now
        self._bounds = origin.all_bounds(self._queues)
        for queue, (first, until) in self._bounds.items():
            done = self._done.get(queue)
            if done is not None and not first <= done <= until:
                # Messages are gone, or the topic is another one: at once.
                self.is_urgent = True
        waiting = self.waiting()
        if not waiting:
            self._since = None
            return
        if self._since is None:
            self._since = now
        if waiting >= 2 * self._sampled:
            self._sample(origin)
            self._sampled = waiting

    def waiting_of(self, queue: Queue) -> Range:
        """The messages of a queue that wait."""
        first, until = self._bounds[queue]
        start = max(first, self._done.get(queue, first))
        return Range(queue, start, max(start, until))

    def waiting(self) -> int:
        """How many messages wait."""
        return sum(self.waiting_of(queue).size for queue in self._bounds)

    def waiting_bytes(self) -> int:
        """How large they are, about, as stored."""
        return int(self.waiting() * self._mean)

    def is_due(self) -> bool:
        """Whether it is to be exported now."""
        now = self._clock.monotonic()
        if now < self.not_before:
            return False
        if self.is_urgent:
            return True
        return self._since is not None and (
            self.waiting_bytes() >= self._pace.target or self._waited(now)
        )

    def _waited(self, now: float) -> bool:
        assert self._since is not None
        seconds = now - self._since
        if self._oldest_ms is not None:
            # A program that is started anew each quarter of an hour commits, too.
            age = (self._clock.wall_ms() - self._oldest_ms) / 1000
            seconds = max(seconds, age)
        return seconds >= self._pace.seconds

    def _sample(self, origin: StreamOrigin) -> None:
        """Look at some messages, of the queue in which most wait."""
        longest = max(
            (self.waiting_of(queue) for queue in self._bounds), key=lambda w: w.size
        )
        wanted = longest._replace(until=min(longest.until, longest.start + SAMPLE))
        layout = first_messages(origin, wanted)
        if layout.size:
            self._mean = int(layout.front["size"].sum()) / layout.size
            self._oldest_ms = int(layout.store_ms[0])


@final
class Follow:
    """Exports topics as their messages come."""

    def __init__(
        self,
        clock: Clock,
        storage: Storage,
        copying: CopyJobs,
        display: Display,
        options: ReadOptions,
        pace: Pace,
        origins: Callable[[ReadOptions], Any],
    ) -> None:
        """
        @param options: with C{nameServer} and topics.
        @param origins: opens a L{StreamOrigin}.
        """
        self._clock = clock
        self._storage = storage
        self._copying = copying
        self._display = display
        self._pace = pace
        self._origins = origins
        # Whoever waits here says so, and may be told to stop meanwhile.
        self._options = attrs.evolve(options, retry_timeout_ms=0)
        self._origin: StreamOrigin | None = None
        self._failures = 0
        self._told = ""
        self._topics = []
        for topic in options.topics:
            job = Job(attrs.evolve(options, topics=(topic,)), pace.target, pace.tasks)
            shown = TopicDisplay(display, topic)
            run = ExportRuns(storage, copying, shown, clock.wall_ms, job, origins)
            self._topics.append(FollowedTopic(topic, run, clock, pace))

    def run(self) -> int:
        """Follow until interrupted, or until no topic can go on.

        @return: the exit status.
        @raise RocketbrokerError: what cannot be followed at all: there is no such
            topic, nobody answers at the beginning, or the ledger cannot be read.
        """
        try:
            self._begin()
            while self._going():
                self._turn()
        except KeyboardInterrupt:
            self._display.say("stopped", pending=self._pending())
        finally:
            self._copying.close()
            self._close_origin()
        return worst([DONE, *(each.status for each in self._topics if each.status)])

    def _pending(self) -> int | None:
        """How many plans wait; None if the ledger does not say it now."""
        try:
            return len(Ledger(self._storage).pending())
        except (RocketbrokerError, OSError):
            return None

    def _going(self) -> list[FollowedTopic]:
        return [each for each in self._topics if each.status is None]

    def _begin(self) -> None:
        ledger = Ledger(self._storage)
        ends, pending = ledger.ends(), ledger.pending()
        origin = self._open_origin()
        for each in self._topics:
            origin.queues(each.topic)
            each.exported(ends)
            each.is_urgent = each.topic in pending
        self._display.say("following", topics=len(self._topics))

    def _turn(self) -> None:
        """Look at the topic at which nobody has looked for longest; export what is due;
        wait."""
        self._look(min(self._going(), key=lambda each: each.looked))
        due = [each for each in self._going() if each.is_due()]
        for each in due:
            self._export(each)
        if not due:
            self._tell_waiting()
            self._clock.sleep(self._pause())

    def _pause(self) -> float:
        return pause_after(self._failures)

    def _look(self, followed: FollowedTopic) -> None:
        try:
            followed.look(self._open_origin())
        except (RocketbrokerError, OSError) as error:
            self._close_origin()
            if not self._failures:
                self._display.say(
                    "no answer", topic=followed.topic, reason=sentence(error)
                )
            self._failures = min(10, self._failures + 1)
            return
        if self._failures:
            self._failures = 0
            self._display.say("answers again", topic=followed.topic)

    def _export(self, followed: FollowedTopic) -> None:
        status = followed.run.run()
        self._told = ""
        if status in (DONE, NOTHING_NEW):
            followed.failures = 0
            followed.exported(Ledger(self._storage).ends())
        elif status == FAILED:
            pause = pause_after(followed.failures)
            followed.failures = min(10, followed.failures + 1)
            followed.not_before = self._clock.monotonic() + pause
        else:
            followed.status = status
            self._display.say("given up", topic=followed.topic, status=status)

    def _tell_waiting(self) -> None:
        """Say once that there is nothing to do now, and when something comes."""
        going = self._going()
        state = "some" if any(each.waiting() for each in going) else "none"
        if self._failures or state == self._told:
            return
        self._told = state
        self._display.say(
            "waiting",
            messages=sum(each.waiting() for each in going),
            bytes=sum(each.waiting_bytes() for each in going),
            topics=len(going),
        )

    def _open_origin(self) -> StreamOrigin:
        if self._origin is None:
            self._origin = self._origins(self._options)
        return self._origin

    def _close_origin(self) -> None:
        origin, self._origin = self._origin, None
        if origin is not None:
            origin.close()
