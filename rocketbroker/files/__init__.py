# -*- test-case-name: tests.files -*-
"""The seam to the disk."""
