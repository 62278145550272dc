"""Documents and requests of ACL 1.0 for tests."""

from __future__ import annotations

from collections.abc import Mapping

from rocketbroker.auth.plain_documents import Document, read
from rocketbroker.auth.request import Asked
from rocketbroker.auth.signatures import Credentials, sign

SECRET = "12345678"

#: Two accounts; the second is an administrator.
SAMPLE = """\
globalWhiteRemoteAddresses:
- 10.10.103.*
accounts:
- accessKey: RocketMQ
  secretKey: 12345678
  whiteRemoteAddress: 192.168.7.7
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - topicA=DENY
  - topicB=PUB|SUB
  - topicC=SUB
  groupPerms:
  - groupA=DENY
  - groupB=PUB|SUB
- accessKey: rocketmq2
  secretKey: 12345678
  admin: true
dataVersion:
- counter: 7
  timestamp: 1700000000000
"""


def sample(text: str = SAMPLE, path: str = "conf/plain_acl.yml") -> Document:
    """A document."""
    return read(path, text)


def signed(
    code: int,
    fields: Mapping[str, str],
    key: str = "RocketMQ",
    secret: str = SECRET,
    source: str = "10.0.0.1",
    body: bytes = b"",
) -> Asked:
    """A request as an account signs it."""
    ext = sign(fields, body, Credentials(key, secret))
    return Asked(code, ext, body, source=source, version=479)
