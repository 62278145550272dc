# -*- test-case-name: tests.store.timerwheel -*-
"""The timer wheel: which message of the timer topic is due when.

A message for later stands in the timer topic. For each there is a unit in the timer
log, which points to its record; the units of one time are a chain, and the wheel has a
slot for each time, which points to the last of them. Nothing of a message is in memory
but its share of the slot. Time is an argument of all this.

  - L{units}: the layout of the timer log.
  - L{log}: the timer log, its segments and its chains.
  - L{wheel}: the slots.
  - L{checkpoint}: C{config/timercheck}, from where a start goes on.
  - L{recovery}: makes the wheel agree with the log after a crash.
  - L{timers}: all of them together, in steps.

C{docs/facts/transaction-timer-pop.md} part B.
"""
