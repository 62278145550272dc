# -*- test-case-name: tests.files -*-
"""The seam to the disk: every access to a file goes through it.

  - L{rocketbroker.files.interfaces}: a file and a file system, as the store uses them.
  - L{rocketbroker.files.disk}: the real one, over the calls of C{os}.
  - L{rocketbroker.files.open_files}: those of a store that are open, up to a bound.
  - L{rocketbroker.files.users}: which processes use a file.
  - L{rocketbroker.files.processes}: the processes of this machine.
  - L{rocketbroker.files.reasons}: errors of the system, with file and position.
  - L{rocketbroker.files.blocks}: reading around bad blocks.
  - L{rocketbroker.files.directories}: directories that outlast a crash.
  - L{rocketbroker.files.obstacles}: something else in the place of a file or directory.
  - L{rocketbroker.files.jsonfile}: a small file that is replaced whole, with C{.bak}.
  - L{rocketbroker.files.settings_file}: a file of settings that is changed in its
    place.

The memory double, which tears, loses and fills up, is L{rocketbroker.testing.files}.
"""
