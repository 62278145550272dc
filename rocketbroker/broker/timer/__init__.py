# -*- test-case-name: tests.broker.timer -*-
"""Messages for any time, and their delivery when they are due.

The modules:

  - L{timer_service}: the service: start, stop, checkpoints, figures.
  - L{wheel_enqueue}: enters messages of the timer topic into the timer wheel.
  - L{wheel_deliver}: delivers what is due, slot by slot.
  - L{timer_records}: reads messages of the timer topic.
  - L{due_slot}: the messages of one slot of the wheel, step by step.
  - L{due_sink}: where due messages go: into this store, or to another group.
  - L{wheel_clock}: the times of the wheel, and how far its work is.
  - L{already_delivered}: recognises what was delivered before a crash.
  - L{timer_counts}: C{timermetrics}, what waits and what was counted, by topic.
    L{recount}: counts it anew.
  - L{step_runner}: rests between steps, which a stop ends.
  - L{recall}: takes a message back by its handle.
  - L{timer_sync}: of a slave, asks its master how far the timers are.
  - L{room}: all parts for messages for later, put together.
"""
