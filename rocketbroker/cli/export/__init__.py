# -*- test-case-name: tests.cli.export -*-
"""C{rocketbroker export}: topics as files.

The parts:

  - L{commands}: the noun, and C{run}; L{brokers}: where from.
  - L{follow}: exporting as messages come.
  - L{views}: looking at exports: status, lag, verify, report.
"""
