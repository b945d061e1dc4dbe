"""The style sheet of a report."""

STYLE = """
:root { color-scheme: light; --ink: #1d2329; --soft: #5b6770; --line: #dde2e6; --ours: #0b62a4; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 28px 24px 80px; }
h1 { font-size: 27px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 20px; margin: 44px 0 8px; padding-top: 12px; border-top: 1px solid var(--line); }
h3 { font-size: 16px; margin: 24px 0 6px; }
p { margin: 6px 0 12px; max-width: 76ch; }
.soft, .legend { color: var(--soft); }
.note { border-left: 4px solid #c98a00; background: #fff7e3; padding: 10px 14px; margin: 12px 0; max-width: none; }
.note.alarm { border-color: #b3261e; background: #fdecea; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; margin: 6px 0 14px; }
th, td { padding: 4px 8px; text-align: right; border-bottom: 1px solid var(--line); }
td { white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child { padding-left: 0; }
th:first-child, td:first-child, .left { text-align: left; }
td.text { white-space: normal; min-width: 16em; max-width: 30em; overflow-wrap: anywhere; }
tr.ours td { font-weight: 600; }
a { color: var(--ours); }
svg { display: block; width: 100%; height: auto; margin: 6px 0; }
svg text { font: 14px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--ink); }
svg text.small { font-size: 12px; fill: var(--soft); }
svg .axis, svg .zero { stroke: #6b7680; } svg .grid { stroke: #e6eaed; } svg .rule { stroke: #f0f2f4; }
svg .mean { stroke: #1d2329; stroke-width: 1.5; stroke-dasharray: 3 3; }
svg .ideal { stroke: #9aa4ac; stroke-dasharray: 4 4; }
svg .interval { stroke-width: 2.2; opacity: .55; } svg .bar { fill: #b9c6d0; }
.legend span { display: inline-block; margin-right: 18px; white-space: nowrap; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 50%; margin-right: 6px; }
.contents { max-width: none; }
.contents a { margin-right: 14px; white-space: nowrap; }
section.page { display: none; }
section.page:target { display: block; }
section.page h2 { overflow-wrap: anywhere; }
ol.blocks { list-style: none; padding: 0; margin: 10px 0; font-size: 14px; }
ol.blocks li { display: flex; gap: 10px; padding: 3px 8px 3px 0; border-left: 5px solid transparent; margin: 1px 0; }
ol.blocks .what { flex: 0 0 98px; text-align: right; color: var(--soft); font-size: 12px; padding-top: 2px; }
ol.blocks .p { flex: 0 0 38px; text-align: right; color: var(--soft); font-size: 12px; padding-top: 2px;
  font-variant-numeric: tabular-nums; }
ol.blocks .text { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 0; }
ol.blocks li.hit, .key .hit { background: #e7f4ec; border-color: #2a8a57; }
ol.blocks li.missed, .key .missed { background: #fdeae7; border-color: #c2372b; }
ol.blocks li.wrong, .key .wrong { background: #fff1d6; border-color: #d1890a; }
li.copy .text, li.other .text { color: var(--soft); }
ol.blocks details { width: 100%; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; font-size: 14px;
  background: #f6f8f9; padding: 10px 14px; }
summary { cursor: pointer; color: var(--soft); }
.key span { display: inline-block; padding: 1px 10px; margin-right: 8px; border-left: 5px solid transparent; }
@media print { section.page { display: block; break-before: page; } }
"""
