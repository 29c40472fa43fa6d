"""The style sheet of all pages and figures: light or dark as the reader prefers, printable."""

LIGHT = (
    "--paper:#fbfaf7;--panel:#f3f1eb;--ink:#22302f;--muted:#5d6b6a;--rule:#dcdad1;"
    "--c1:#23667a;--c2:#b0692a;--c3:#5b7a3a;--c4:#8a4f7d;--c5:#7a7466;--c6:#a8323e"
)
DARK = (
    "--paper:#151a1c;--panel:#1e2527;--ink:#e3e8e5;--muted:#9dabaa;--rule:#323c3e;"
    "--c1:#74b8c9;--c2:#dda15e;--c3:#9dbf78;--c4:#c995bd;--c5:#b3ac9b;--c6:#e58a8f"
)

FIGURES = """
.qw text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;fill:var(--ink)}
.qw .small{font-size:12px;fill:var(--muted)}
.qw .grid{stroke:var(--rule);stroke-width:1}
.qw .axis{stroke:var(--muted);stroke-width:1}
.qw .bar{fill:var(--c1);opacity:.16}
.qw .solid{fill:var(--c1);opacity:.75}
.qw .hollow{fill:none;stroke:var(--muted);stroke-dasharray:3 2}
.qw .interval{stroke:var(--c1);stroke-width:3;stroke-linecap:round;opacity:.65}
.qw .value{fill:var(--c1)}
.qw .truth{fill:none;stroke:var(--c2);stroke-width:2}
.qw .line{fill:none;stroke-width:2;stroke-linejoin:round}
.qw .dashed{stroke-dasharray:6 4;stroke-width:1.5}
.qw .cell{fill:var(--c1);stroke:var(--rule)}
.qw text.cell-text{stroke:var(--paper);stroke-width:3px;paint-order:stroke;stroke-linejoin:round}
"""

PAGE = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
  font:17px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main,header,footer,nav{max-width:46rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:2.75rem}
.mark{display:block;width:2.5rem;height:2.5rem;margin-bottom:.9rem}
h1{font-size:2rem;line-height:1.2;margin:0 0 .5rem;letter-spacing:-.01em;font-weight:650}
h2{font-size:1.35rem;line-height:1.3;margin:0 0 .6rem;font-weight:650}
.lead{font-size:1.1rem;color:var(--muted);margin:0 0 1.25rem}
nav ol{margin:0;padding:.9rem 1.25rem .9rem 2.6rem;background:var(--panel);border-radius:.5rem}
section{padding:2.25rem 0 .5rem}
section+section{border-top:1px solid var(--rule);margin-top:1.75rem}
a{color:var(--c1);text-underline-offset:.15em}
a:focus-visible,[tabindex]:focus-visible{outline:2px solid var(--c2);outline-offset:2px}
p{margin:.6rem 0}
code{font:.9em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
pre{background:var(--panel);padding:.85rem 1rem;border-radius:.5rem;overflow-x:auto}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;margin:1rem 0;font-size:.94rem;
  font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--muted);padding-bottom:.5rem}
th,td{padding:.4rem .6rem .4rem 0;text-align:left;border-bottom:1px solid var(--rule);
  vertical-align:top}
th{font-weight:600;border-bottom-color:var(--muted)}
.number{text-align:right;white-space:nowrap;padding-right:1.8rem}
td:first-child{min-width:6rem}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(10rem,1fr));gap:.75rem;
  margin:1.1rem 0}
.facts div{background:var(--panel);border-radius:.5rem;padding:.7rem 1rem}
.facts dt{font-size:.85rem;color:var(--muted)}
.facts dd{margin:0;font-size:1.05rem;font-weight:600;line-height:1.35}
.note{border-left:3px solid var(--c2);background:var(--panel);padding:.7rem 1rem;margin:1.1rem 0;
  border-radius:0 .5rem .5rem 0}
details{margin:1rem 0}summary{cursor:pointer;color:var(--c1)}
figure{margin:1.4rem 0}
figure svg,figure img{width:100%;height:auto;display:block}
.figure-title{font-weight:600;margin:0 0 .3rem}
figcaption{color:var(--muted);font-size:.94rem;margin-top:.3rem}
footer{padding-top:1.5rem;padding-bottom:3rem;color:var(--muted);font-size:.9rem}
figure .narrow{display:none}
@media screen and (max-width:40rem){figure .wide{display:none}figure .narrow{display:block}
  td:first-child{min-width:0}.number{padding-right:.6rem}th.number{white-space:normal}
  .facts{grid-template-columns:1fr}}
@media print{body{font-size:11pt}nav{display:none}section,figure,table{break-inside:avoid}
  section+section{border:0}main,header,footer{max-width:none}.scroll,pre{overflow:visible}}
"""

_THEMES = (
    f":root{{color-scheme:light dark;{LIGHT}}}\n"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{DARK}}}}}\n"
)

PAGE_STYLE = _THEMES + PAGE + FIGURES
FIGURE_STYLE = f".qw{{{LIGHT}}}\n@media (prefers-color-scheme:dark){{.qw{{{DARK}}}}}\n{FIGURES}"
