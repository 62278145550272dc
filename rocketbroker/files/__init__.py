# -*- test-case-name: tests.files -*-
"""The seam to the disk: every access to a file goes through it.

  - L{interfaces}: a file and a file system, as the store uses them.
  - L{disk}: the real one, over the calls of C{os}.
  - L{open_files}: those of a store that are open, up to a bound.
  - L{open_by}: which processes use a file.
  - L{processes}: the processes of this machine.
  - L{os_errors}: errors of the system, with file and position.
  - L{blocks}: reading around bad blocks.
  - L{directories}: directories that outlast a crash.
  - L{misplaced_files}: something else in the place of a file or directory.
  - L{jsonfile}: a small file that is replaced whole, with C{.bak}.
  - L{settings_file}: a file of settings that is changed in its
    place.

The memory double, which tears, loses and fills up, is L{rocketbroker.testing.files}.
"""
