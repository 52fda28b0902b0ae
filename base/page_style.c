/* page_style.c: the style sheet of HTML pages.
 *
 * Colours are variables, given once for light and once for dark; those of lines
 * are the Okabe-Ito set, a little darker or lighter where it would be hard to
 * see on the paper, and ten of a ramp. */
#include "tacit/page.h"

#define LIGHT                                                                 \
    "color-scheme:light;--tac-ink:#1a1a1a;--tac-paper:#fff;--tac-grid:#"      \
    "e4e4e4;"                                                                 \
    "--tac-grey:#737373;--tac-soft:#f4f4f2;--tac-good:#00664a;"               \
    "--tac-bad:#a33c00;--tac-link:#005a8f;--tac-c0:#0072b2;--tac-c1:#c44f00;" \
    "--tac-c2:#00855f;--tac-c3:#b5568d;--tac-c4:#a87100;--tac-c5:#2b8cc4;"    \
    "--tac-c6:#1a1a1a;--tac-c7:#6a4fb3;--tac-c10:#0d0887;--tac-c11:#3a049a;"  \
    "--tac-c12:#5f01a6;--tac-c13:#7e03a8;--tac-c14:#9a169f;"                  \
    "--tac-c15:#b52f8c;--tac-c16:#cc4778;--tac-c17:#dc5d66;"                  \
    "--tac-c18:#e97257;--tac-c19:#f07f2e;"
#define DARK                                                                   \
    "color-scheme:dark;--tac-ink:#e8e8e6;--tac-paper:#161718;"                 \
    "--tac-grid:#34363a;--tac-grey:#9a9a9a;--tac-soft:#212326;"                \
    "--tac-good:#52d3a6;--tac-bad:#ff9a66;--tac-link:#7cc4f5;"                 \
    "--tac-c0:#4aa3e6;--tac-c1:#ff8a4a;--tac-c2:#35c99d;--tac-c3:#e89bc6;"     \
    "--tac-c4:#efb42e;--tac-c5:#a6daf8;--tac-c6:#f2f2f0;--tac-c7:#b9a3f5;"     \
    "--tac-c10:#b12a90;--tac-c11:#c23c81;--tac-c12:#d04d73;--tac-c13:#dd5e66;" \
    "--tac-c14:#e87059;--tac-c15:#f1834c;--tac-c16:#f89740;"                   \
    "--tac-c17:#fdae32;--tac-c18:#fcc728;--tac-c19:#f4e926;"

#define COLOURS                                             \
    ":root{" LIGHT "}\n"                                    \
    "@media (prefers-color-scheme:dark){:root{" DARK "}}\n" \
    "@media print{:root{" LIGHT "}}\n"

const char *tac_page_colours(void)
{
    return COLOURS;
}

const char *tac_page_style(void)
{
    return COLOURS
        "*{box-sizing:border-box}"
        "body{margin:0 auto;padding:1rem;max-width:1560px;"
        "background:var(--tac-paper);color:var(--tac-ink);"
        "font:15px/1.5 system-ui,sans-serif;overflow-wrap:break-word}"
        "h1{font-size:1.6rem;line-height:1.25;margin:.2em 0}"
        "h2{font-size:1.25rem;margin:1.8em 0 .4em;"
        "border-bottom:1px solid var(--tac-grid)}"
        "h3{font-size:1.02rem;margin:1.3em 0 0}figcaption h3{margin:0}"
        "p,li,dd{max-width:78ch}p{margin:.4em 0}"
        "a{color:var(--tac-link)}"
        "nav a{margin-right:1em;white-space:nowrap}"
        "dl.facts{display:grid;grid-template-columns:minmax(7em,max-content)"
        " "
        "1fr;gap:.15em 1em}dl.facts dt{color:var(--tac-grey)}"
        "dl.facts dd{margin:0;min-width:0}"
        "dl.terms dt{font-weight:600;margin-top:.5em}"
        "dl.terms dd{margin:0 0 0 1.5em}"
        "code,pre{font:13px/1.45 ui-monospace,monospace}"
        "pre{background:var(--tac-soft);padding:.6em .8em;margin:.4em 0;"
        "white-space:pre-wrap;overflow-wrap:anywhere}"
        "figure{margin:1.4em 0 0}"
        ".panels{display:grid;gap:.6rem 1.2rem;margin-top:.4rem;"
        "grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr))"
        "}"
        ".panels>*{min-width:0;max-width:520px}"
        ".pair{display:grid;gap:0 2rem;"
        "grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr))}"
        ".pair>*{min-width:0}"
        "@media (min-width:1000px){"
        ".pair.third{grid-template-columns:1fr 2fr}}"
        ".large{max-width:660px;margin-top:.4rem}"
        "svg.plot{display:block;width:100%;height:auto;"
        "font-family:system-ui,sans-serif}"
        "svg .grid{stroke:var(--tac-grid);fill:none}"
        "svg .title{font-weight:600;font-size:12.5px}"
        "svg .sub{fill:var(--tac-grey)}"
        "ul.legend{list-style:none;padding:0;margin:.3rem 0 0;"
        "display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;font-size:13px;"
        "max-width:none}"
        "ul.legend li{white-space:nowrap}"
        "svg.key{vertical-align:-1px}"
        /* A shadow at an end beyond which there is more. */
        ".box{overflow-x:auto;max-width:100%;margin:.5em 0;background:"
        "linear-gradient(90deg,var(--tac-paper) 50%,transparent) 0 0/"
        "32px 100% no-repeat local,"
        "linear-gradient(270deg,var(--tac-paper) 50%,transparent) 100% 0/"
        "32px 100% no-repeat local,"
        "linear-gradient(90deg,var(--tac-grid),transparent) 0 0/14px 100% "
        "no-repeat scroll,"
        "linear-gradient(270deg,var(--tac-grid),transparent) 100% 0/14px "
        "100% no-repeat scroll}"
        ".box:focus-visible{outline:2px solid var(--tac-link)}"
        "table{border-collapse:collapse;font-size:13px;"
        "font-variant-numeric:tabular-nums}"
        "th,td{padding:.22em .6em;text-align:right;white-space:nowrap;"
        "border-bottom:1px solid var(--tac-grid)}"
        "th{text-align:right;vertical-align:bottom;font-weight:600}"
        "caption{text-align:left;color:var(--tac-grey)}"
        "th:first-child,td:first-child{text-align:left}"
        "@media (min-width:700px){"
        "table.all th:first-child,table.all td:first-child{position:sticky;"
        "left:0;background:var(--tac-paper)}}"
        "@media (max-width:699px){table.all td:first-child{"
        "white-space:normal;min-width:9em}}"
        "td.t,th.t{text-align:left}"
        "tbody tr:hover td{background:var(--tac-soft)}"
        "th small{display:block;font-weight:400;color:var(--tac-grey)}"
        "th button{font:inherit;color:inherit;background:none;border:0;"
        "padding:0;cursor:pointer;text-align:inherit}"
        "th[aria-sort=ascending] button::after{content:\" \\2191\"}"
        "th[aria-sort=descending] button::after{content:\" \\2193\"}"
        "table.narrow th,table.narrow td.t{white-space:normal;"
        "max-width:6.2em}"
        "table.narrow th,table.narrow td{padding:.22em .4em}"
        ".beats{color:var(--tac-good)}.loses{color:var(--tac-bad)}"
        ".note{color:var(--tac-grey)}"
        ".warn{border-left:3px solid var(--tac-bad);padding-left:.7em}"
        "@media print{body{font-size:9pt;padding:0;max-width:none}"
        "nav{display:none}.box{overflow:visible}"
        "table{font-size:6.5pt}th,td{white-space:normal;padding:1px 3px}"
        "svg.plot,tr,h3{break-inside:avoid}"
        "h2,figcaption{break-after:avoid}"
        ".panels{grid-template-columns:1fr 1fr}}\n";
}
