# -*- test-case-name: tests.broker.schedule -*-
"""Messages that wait for a delay level.

- L{schedule_service} delivers what is due. L{delay_level}: one level, and what is due
  of it. L{delay_offsets}: how far each level is. L{delay_recovery}: what a crash has
  kept from being written down. L{clock_jumps}: waits when somebody sets the clock.
"""
