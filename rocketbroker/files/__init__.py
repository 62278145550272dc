# -*- test-case-name: tests.files -*-
"""The seam to the disk: all that this package does to files goes through it.

- L{rocketbroker.files.interfaces}: what a file and a file system can do here.
- L{rocketbroker.files.disk}: the real one, over the calls of L{os}.
- L{rocketbroker.files.users}: which processes use them.
- L{rocketbroker.files.reasons}: what it refused, and where.
- L{rocketbroker.files.blocks}: reading around what it cannot read.
- L{rocketbroker.files.directories}: directories that outlast a crash.
- L{rocketbroker.files.obstacles}: what stands where one of ours belongs.
- L{rocketbroker.files.jsonfile}: a small file that is replaced whole, with C{.bak}.

The memory double, which tears, loses and fills up, is L{rocketbroker.testing.files}.
"""
