# -*- test-case-name: tests.admin.verbs -*-
"""The nouns of the command C{rocketbroker} and their verbs, a module for each noun.

- L{topic}: ls, show, create, update, delete.
- L{group}: the same; L{reset}: of its offsets.
- L{message}: view and find; L{send}, L{receive}: pipes.
"""
