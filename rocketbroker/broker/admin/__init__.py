# -*- test-case-name: tests.broker.admin -*-
"""Administration, put together by L{administration}.

- L{topic_admin}; L{group_admin}; L{runtime_info}: settings and figures (26, 28).
- L{consume_progress}: how far groups are (208, 303). L{reset_offset}: sets it (222).
  L{clone_offsets}: from those of other groups (308, 314).
- L{client_relay}: what members of groups are asked through the broker (307, 309).
- L{message_queries}: requests 29 to 33.
"""
