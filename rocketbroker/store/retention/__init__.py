# -*- test-case-name: tests.store.retention -*-
"""Retention: which files are removed, when, and in which order (L{cleaner})."""
