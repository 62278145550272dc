# -*- test-case-name: tests.client.test_options_page -*-
"""C{docs/client-options.rst}, made from the settings of the client themselves::

python3 -m rocketbroker.client.options_page > docs/client-options.rst
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import attrs

from rocketbroker.client.options import ClientOptions, ConsumerOptions
from rocketbroker.client.settings import (
    ClientSettings,
    ConsumerSettings,
    ProducerSettings,
)
from rocketbroker.records.names import INNER_PRODUCER

INTRODUCTION: Final = """\
=====================
Options of the client
=====================

.. Made from the code:
   python3 -m rocketbroker.client.options_page > docs/client-options.rst

What ``connect``, ``consumer``, ``on`` and ``lite_pull`` of ``rocketbroker.aio``,
``rocketbroker.threads`` and ``rocketbroker.deferred`` take by name
(``docs/clients.rst``). Times are seconds. A name that is not known, and a value that
cannot be, is refused at once, by one sentence. Options out of a settings file are given
as ``connect(**mapping)``.

``ROCKETMQ_NAMESRV`` in the environment names the name servers where ``connect`` is
given none; without it they are 127.0.0.1:9876.
"""

#: What Java's clients call it, where they have the same: setters of producers and
#: consumers, and keys of ClientConfig. C{docs/facts/client.md} 1, 4.1, 19.
JAVA_NAMES: Final = {
    "accumulate": "autoBatch",
    "accumulate_bytes": "batchMaxBytes",
    "accumulate_seconds": "batchMaxDelayMs",
    "accumulate_total_bytes": "totalBatchMaxBytes",
    "attempts": "retryTimesWhenSendFailed + 1",
    "avoid_slow": "sendLatencyEnable",
    "detector": "startDetectorEnable",
    "detect_seconds": "detectTimeout",
    "detect_interval": "detectInterval",
    "broadcast": "messageModel BROADCASTING",
    "commit_seconds": "persistConsumerOffsetInterval",
    "compress": "rocketmq.message.compressType",
    "compress_level": "rocketmq.message.compressLevel",
    "compress_over": "compressMsgBodyOverHowmuch",
    "consume_timeout": "consumeTimeout",
    "group": "producerGroup",
    "heartbeat_seconds": "heartbeatBrokerInterval",
    "hold_seconds": "brokerSuspendMaxTimeMillis",
    "instance_name": "instanceName",
    "invisible_seconds": "popInvisibleTime",
    "max_attempts": "maxReconsumeTimes",
    "max_body_bytes": "maxMessageSize",
    "max_send_bytes": "backPressureForAsyncSendSize",
    "max_sends": "backPressureForAsyncSendNum",
    "max_span": "consumeConcurrentlyMaxSpan",
    "max_unacknowledged": "pullThresholdForQueue",
    "ordered": "MessageListenerOrderly",
    "pull_batch": "pullBatchSize",
    "pull_bytes": "pullBatchSizeInBytes",
    "rebalance_seconds": "rocketmq.client.rebalance.waitInterval",
    "retry_unsafe": "retryAnotherBrokerWhenNotStoreOK",
    "route_seconds": "pollNameServerInterval",
    "seconds": "mqClientApiTimeout",
    "start": "consumeFromWhere, consumeTimestamp",
    "strategy": "allocateMessageQueueStrategy",
    "suspend_seconds": "suspendCurrentQueueTimeMillis",
    "unit_name": "unitName",
}

#: Roles of epytext that a page shows as code: the text in their braces.
_CODE: Final = re.compile(r"[CL]\{([^}]*)\}")


class Section(NamedTuple):
    """A table of the page.

    @ivar options: what the calls take.
    @ivar settings: the classes whose settings stand in the table.
    """

    title: str
    about: str
    options: type
    settings: tuple[type[attrs.AttrsInstance], ...]


SECTIONS: Final = (
    Section(
        "connect",
        "A client and what it sends with.",
        ClientOptions,
        (ClientSettings, ProducerSettings),
    ),
    Section(
        "consumer, on and lite_pull",
        "One member of a group. ``on`` takes ``concurrency``, too: how many messages "
        "the listener has in hand at once; unless given, 20.",
        ConsumerOptions,
        (ConsumerSettings,),
    ),
)


def meanings(documented: type) -> Mapping[str, str]:
    """What the docstring of a class says of its attributes, in reStructuredText."""
    fields = re.split(r"^@ivar (\w+):", inspect.getdoc(documented) or "", flags=re.M)
    names, texts = fields[1::2], fields[2::2]
    return {
        name: _CODE.sub(r"``\1``", " ".join(text.split()))
        for name, text in zip(names, texts, strict=True)
    }


def _default(value: object) -> str:
    if value in (attrs.NOTHING, None, INNER_PRODUCER):
        return ""
    return f'``"{value}"``' if isinstance(value, str) else f"``{value!r}``"


def rows(section: Section) -> Iterator[tuple[str, str, str, str]]:
    """Option, default, Java's name and meaning of all that the calls take.

    @raise KeyError: no docstring says what one means.
    """
    texts = dict(meanings(section.options))
    defaults = {}
    for settings in section.settings:
        texts.update(meanings(settings))
        for field in attrs.fields(settings):
            defaults[field.name] = _default(field.default)
    for name in section.options.__annotations__:
        java = JAVA_NAMES.get(name, "")
        meaning = texts[name]
        meaning = meaning[0].upper() + meaning[1:]
        yield (f"``{name}``", defaults.get(name, ""), java, meaning)


def options_page() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield INTRODUCTION
    for number, section in enumerate(SECTIONS):
        if number:
            yield ""
        yield section.title
        yield "=" * len(section.title)
        yield ""
        yield section.about
        yield ""
        yield ".. list-table::"
        yield "   :header-rows: 1"
        yield "   :widths: 18 14 24 44"
        yield ""
        heading = ("Option", "Default", "In Java", "Meaning")
        for first, *others in (heading, *rows(section)):
            yield f"   * - {first}"
            for cell in others:
                yield f"     - {cell}".rstrip()


if __name__ == "__main__":
    print(options_page(), end="")
