# -*- test-case-name: tests.broker.metadata -*-
"""Tables that are kept beside the messages, each with its JSON file.

The modules:

  - L{topics}, L{topic_attributes}; L{groups}; L{creation_limit}: how many of both
    clients may create. L{deletions}: those that were deleted. L{queue_mappings}: queues
    of static topics. L{offsets}, whose text
    L{offset_texts} makes and whose files L{offset_files} reads; of these
    L{pending_resets}: those set by an operator.
    L{message_request_mode}: pull or pop, by topic and group. L{counts_file}: what other
    parts count by topic.
"""
