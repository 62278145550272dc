# -*- test-case-name: tests.config -*-
"""Settings: .properties files and typed, documented options."""
