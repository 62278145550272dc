# -*- test-case-name: tests.store.retention -*-
"""Retention: the removal of old files of a store (L{cleaner})."""
