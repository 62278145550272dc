# -*- test-case-name: tests.testing.brokers -*-
"""A broker for the tests of programs that use one.

Our own tests need it, too, but it is made for those of users, who import it from
L{rocketbroker.testing}.

The modules:

  - L{process}: C{rocketbroker standalone} as a child of the tests' process, one for all
    its tests.
  - L{broker}: what one test sees of it: topics and groups of its own, and what is in
    them; L{coroutines}: how coroutines wait for that.
  - L{report}: what a failed test shows of it.
  - L{pytest_plugin}: the fixture C{rocketmq} of pytest.
"""
