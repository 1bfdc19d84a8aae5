//! The style of pictures, light and dark, and of pages down to 420 pixels.

/// Colours, and how the bands of a film are filled.
pub const COLOURS: &str = "\
:root{--ink:#1b2430;--soft:#566274;--line:#dde1e8;--page:#fff;--sunk:#f2f4f7;--bad:#c42b2b;\
--system:#7d8796;--user:#2f7fd6;--assistant:#14936b;--output:#e0a52e;--ours:#a254c7}\
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf2;--soft:#9aa7b8;--line:#303a47;--page:#12161c;\
--sunk:#1a2029;--bad:#ff8080;--system:#8a96a8;--user:#4d9bea;--assistant:#34b68a;--output:#e2b04a;\
--ours:#bf7fe0}}\
.system{fill:var(--system);background:var(--system)}.user{fill:var(--user);background:var(--user)}\
.assistant{fill:var(--assistant);background:var(--assistant)}\
.output{fill:var(--output);background:var(--output)}.ours{fill:var(--ours);background:var(--ours)}";

/// The style of a page and of the film in it.
pub const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;\
color:var(--ink);background:var(--page)}\
h1{font-size:1.4rem;line-height:1.25;margin:0;overflow-wrap:anywhere}p{color:var(--soft)}\
.headline{font-size:1.15rem;color:var(--ink);font-weight:600;margin:1.2rem 0}\
.film{position:relative;height:320px;margin:0 0 1.4rem 3rem;background:var(--sunk);border-radius:6px}\
.film svg{position:absolute;inset:0;width:100%;height:100%}\
.film span{position:absolute;font-size:12px;color:var(--soft);white-space:nowrap}\
.film .axis{right:calc(100% + 6px);transform:translateY(50%)}\
.film .limit{left:6px;color:var(--bad)}\
.film .other{right:4px;padding:0 4px;border-radius:3px;background:var(--page);opacity:.85;\
transform:translateY(50%)}.film .calls{top:calc(100% + 2px);right:0}\
.film polyline{fill:none;stroke:var(--ink);stroke-opacity:.45;vector-effect:non-scaling-stroke}\
.film .all{stroke-dasharray:2 3;stroke-opacity:1}\
.film line{stroke:var(--bad);vector-effect:non-scaling-stroke}\
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;padding:0;list-style:none;color:var(--soft);\
font-size:13px}.legend i{display:inline-block;width:.7em;height:.7em;margin-right:.4em;\
border-radius:2px}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th,td{text-align:right;padding:.3rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap;\
color:var(--soft);font-weight:400}th:first-child,td:first-child{text-align:left}\
tr.chosen td{color:var(--ink);font-weight:650}\
@media(max-width:480px){th,td{padding:.3rem .2rem;font-size:12.5px}\
th{white-space:normal;vertical-align:bottom}}";
