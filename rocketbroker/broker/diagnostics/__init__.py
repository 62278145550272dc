# -*- test-case-name: tests.broker.diagnostics -*-
"""What is wrong with groups and nobody tells.

- L{group_diagnosis}: looks, keeps and shows. L{group_problems}: the rules.
"""
