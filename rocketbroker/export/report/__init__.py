# -*- test-case-name: tests.export.report -*-
"""An export as one page of HTML, for people.

The modules:

  - L{figures}: what the page shows, as numbers.
  - L{charts}: the shapes of its drawings.
  - L{number_texts}: numbers as people read them.
  - L{snippets}: programs that read an export.
  - L{page}: all of it together, in the template C{page.html}, which has the words, the
    marks and the style sheet.
"""
