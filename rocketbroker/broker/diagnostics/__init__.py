# -*- test-case-name: tests.broker.diagnostics -*-
"""Problems of consumer groups that nothing else reports.

The modules:

  - L{group_diagnosis}: looks for them, logs and lists them. L{group_problems}: the
    rules."""
