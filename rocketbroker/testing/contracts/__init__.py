# -*- test-case-name: tests.testing.test_contracts -*-
"""Contract suites: what every implementation of an interface does, double or real.

A suite is a mix-in without a test case of its own. A test class names the suite first
and trial's test case behind it, and makes what is tested::

    class MyFilesTests(FilesContract, SynchronousTestCase):
        def make(self) -> tuple[IFiles, str]:
            return MyFiles(), "/an/empty/directory"

Our own implementations and doubles run the same suites, so that a double cannot drift
from what it stands for.

The modules:

  - L{case}: what all suites are to the type checker.
  - L{files}: disks; L{processes}: the processes of a machine, and who uses files.
  - L{connections}: connections of a server, and L{proxy_header} what may come before
    their first frame; L{wire}: the peer that a test plays for both.
  - L{streams}: streams of the blocking client.
  - L{raw_log}: logs that are replicated.
  - L{storage}: places for the files of exports.
"""
