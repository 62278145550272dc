# -*- test-case-name: tests.export.report -*-
"""An export as one page of HTML, for people.

The modules:

  - L{figures<rocketbroker.export.report.figures>}: what the page shows, as numbers.
  - L{charts<rocketbroker.export.report.charts>}: drawings.
  - L{markup<rocketbroker.export.report.markup>}: tables and sections.
  - L{snippets<rocketbroker.export.report.snippets>}: programs that read an export.
  - L{style<rocketbroker.export.report.style>}: the style sheet.
  - L{page<rocketbroker.export.report.page>}: all of it together.
"""
