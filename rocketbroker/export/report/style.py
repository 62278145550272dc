# -*- test-case-name: tests.export.report.test_page -*-
"""The style sheet of reports: for screens and for paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { --ink: #1d2733; --soft: #66717f; --rule: #e3e7ec; --blue: #2f6fb2;
  --red: #c8442f; --amber: #e0a032; --grey: #c9d0d8; --green: #2c7a4b; }
* { box-sizing: border-box; }
body { margin: 0; background: #f4f6f8; color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { margin: 0; font-size: 28px; }
h2 { margin: 0 0 4px; font-size: 18px; }
h3 { margin: 16px 0 4px; font-size: 14px; color: var(--soft); }
p { margin: 6px 0; }
.address { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.note, .legend { color: var(--soft); font-size: 13px; }
.verdict { margin: 18px 0; padding: 14px 18px; border-radius: 8px; font-size: 17px;
  font-weight: 600; border-left: 6px solid; background: #fff; }
.good { color: var(--green); } .warn { color: #8a5a00; } .bad { color: var(--red); }
.cards { display: grid; gap: 12px;
  grid-template-columns: repeat(auto-fit, minmax(126px, 1fr)); }
.cards div { background: #fff; border: 1px solid var(--rule); border-radius: 8px;
  padding: 11px 12px; }
.cards b { display: block; font-size: 18px; font-weight: 650;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.cards span { color: var(--soft); font-size: 13px; }
section { background: #fff; border: 1px solid var(--rule); border-radius: 8px;
  padding: 18px 20px; margin-top: 16px; break-inside: avoid; overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 13px; margin-top: 8px; }
th { text-align: left; color: var(--soft); font-weight: 600; white-space: nowrap; }
th, td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--rule);
  overflow-wrap: anywhere; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.more td { color: var(--soft); border: 0; }
pre { background: #f4f6f8; border-radius: 6px; padding: 10px 12px; margin: 0;
  overflow-x: auto; font: 13px/1.45 ui-monospace, monospace; }
svg { display: block; width: 100%; height: auto; margin-top: 8px; }
svg.span { width: 160px; height: 12px; margin: 0; }
svg text { font-size: 12px; fill: var(--soft); }
text.y { text-anchor: end; } text.x { text-anchor: middle; }
text.mark { fill: var(--ink); } line.grid { stroke: var(--rule); }
line.mark { stroke: var(--ink); stroke-dasharray: 4 3; }
.bar { fill: var(--blue); background: var(--blue); }
.missing { fill: var(--red); background: var(--red); }
.wait { fill: var(--amber); background: var(--amber); }
.gone { fill: var(--grey); background: var(--grey); }
.column { fill: transparent; } g:hover .column { fill: #eef2f6; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px;
  margin: 0 5px 0 14px; } .legend i:first-child { margin-left: 0; }
@media print { body { background: #fff; } main { padding: 0; } }
"""
