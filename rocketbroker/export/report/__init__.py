# -*- test-case-name: tests.export.report -*-
"""An export as one page of HTML, for people.

The modules:

  - L{figures}: what the page shows, as numbers.
  - L{charts}: drawings.
  - L{markup}: tables and sections.
  - L{snippets}: programs that read an export.
  - L{style}: the style sheet.
  - L{page}: all of it together.
"""
