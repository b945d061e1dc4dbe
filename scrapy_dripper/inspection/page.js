"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const by = id => document.getElementById(id);

/** Return a new element. Children that are no elements become text, never markup. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "role") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const MARK = "data-dripper-block";
const UNSURE = [0.2, 0.8];
const UPTO = 1000; // characters of a block in lists
const blocks = data.blocks.map(([p, main, flags, reasons, rule]) => ({ p, main, flags, reasons, rule }));
const n = blocks.length;
const has = n > 0 && blocks[0].p !== null;
const labels = blocks.map(block => block.main);
const hand = blocks.map(() => false);
const seen = new Set();
const past = [];
const doubts = [...blocks.keys()].filter(isUncertain);
let current = -1, inner = null, marks = [], texts = blocks.map(() => ""), rows = [], asked = 0;
let settled = ""; // where the slider was before it was moved; empty for the model's labels

function isUncertain(i) {
  const { p, main } = blocks[i];
  return p !== null && ((p > UNSURE[0] && p < UNSURE[1]) || (p >= 0.5) !== Boolean(main));
}
const word = i => labels[i] ? "main" : "other";
const number = p => p === null ? "–" : p.toFixed(2);

// ---------------------------------------------------------------- labels
/** Set labels, [block, label, by hand], as one step that can be undone. Moving the slider is one step, too. */
function set(changes, note, slides = false) {
  const last = past.at(-1);
  const goes = slides && last?.slides;
  const old = new Map(goes ? last.old.map(one => [one[0], one]) : []);
  changes = changes.filter(([i, label, mine]) => labels[i] !== label || hand[i] !== mine);
  for (const [i] of changes) if (!old.has(i)) old.set(i, [i, labels[i], hand[i]]);
  if (!old.size) return;
  if (goes) last.old = [...old.values()];
  else past.push({ old: [...old.values()], value: slides ? settled : threshold.dataset.now, slides });
  if (!slides) settled = threshold.dataset.now;
  apply(changes);
  if (note) say(note);
}
function apply(changes) {
  for (const [i, label, mine] of changes) {
    labels[i] = label;
    hand[i] = mine;
    paint(i);
  }
  count();
  if (current >= 0) card(current);
  keep();
}
function flip(i = current) {
  if (i < 0) return;
  seen.add(i);
  set([[i, labels[i] ? 0 : 1, true]], `Block ${i + 1} is ${labels[i] ? "other" : "main"} now`);
}
function decide(label) {
  if (current < 0) return;
  seen.add(current);
  set([[current, label, true]]);
  step(1);
}
function undo() {
  const last = past.pop();
  if (!last) return say("Nothing to undo");
  apply(last.old);
  show(settled = last.value);
  if (last.old.length === 1) choose(last.old[0][0]);
  say("Undone");
}
function cut(t) {
  const changes = [];
  blocks.forEach((block, i) => { if (!hand[i]) changes.push([i, block.p >= t ? 1 : 0, false]); });
  set(changes, "", true);
  show(String(Math.round(t * 100)));
}
function show(value) {
  threshold.dataset.now = value;
  if (value) threshold.value = value;
  by("shown").textContent = value ? (value / 100).toFixed(2) : "model";
}
function reset() {
  set(blocks.map((block, i) => [i, block.main, false]), "The model’s labels");
  show(settled = "");
}

// ---------------------------------------------------------------- what is shown of a block
function paint(i) {
  for (const mark of marks[i] ?? []) {
    mark.setAttribute("data-dripper-label", word(i));
    if (hand[i]) mark.setAttribute("data-dripper-hand", "");
    else mark.removeAttribute("data-dripper-hand");
  }
  const row = rows[i];
  if (!row) return;
  row.classList.toggle("main", Boolean(labels[i]));
  row.classList.toggle("hand", hand[i]);
  row.box.checked = Boolean(labels[i]);
}
function count() {
  const main = labels.reduce((sum, label) => sum + label, 0);
  const changed = labels.reduce((sum, label, i) => sum + (label !== blocks[i].main), 0);
  by("count").textContent = `${main} of ${n} blocks main` + (changed ? `, ${changed} changed` : "");
  by("progress").textContent = `${doubts.filter(i => seen.has(i)).length} of ${doubts.length} seen`;
  by("undo").disabled = !past.length;
}
function card(i) {
  const { p, flags, reasons, main, rule } = blocks[i];
  const parts = (sign, title) => {
    const found = reasons.filter(([, change]) => change * sign > 0);
    if (!found.length) return "";
    const list = found.map(([group, change]) => `${data.groups[group]} ${change > 0 ? "+" : "−"}${Math.abs(change).toFixed(2)}`);
    return make("span", { className: title }, `${title}: ${list.join(", ")}`);
  };
  const head = make("div", { className: "head" },
    make("span", { className: "soft" }, `block ${i + 1}`),
    make("span", { className: `mark ${word(i)} ${hand[i] ? "hand" : ""}` }, word(i) + (hand[i] ? " (by hand)" : "")),
    ...(p === null ? [] : [make("span", { className: "bar", ariaHidden: "true" }, make("i")), `${number(p)}`]),
    ...flags.map(flag => make("span", { className: "flag" }, data.flags[flag])));
  const fill = head.querySelector(".bar i");
  if (fill) fill.style.width = `${p * 100}%`;
  const notes = [parts(1, "for"), parts(-1, "against")].filter(Boolean);
  if (rule && labels[i] === main) notes.unshift(`decided by a rule: ${data.rules[rule]}`);
  if (marks[i] && !isShown(i)) notes.push("not visible on the page");
  const line = make("p", { className: "reasons" });
  notes.forEach((note, k) => line.append(...(k ? [" · ", note] : [note])));
  by("card").replaceChildren(head, ...(notes.length ? [line] : []), make("p", { className: "quote", dir: "auto" }, texts[i]));
  by("card").dataset.block = i + 1;
}
function isShown(i) {
  return marks[i].some(mark => mark.checkVisibility?.({ opacityProperty: true, visibilityProperty: true }) ?? true);
}

// ---------------------------------------------------------------- going from block to block
function choose(i, speak = false) {
  if (i < 0 || i >= n) return;
  for (const mark of marks[current] ?? []) mark.removeAttribute("data-dripper-here");
  rows[current]?.classList.remove("here");
  current = i;
  for (const mark of marks[i] ?? []) {
    mark.setAttribute("data-dripper-here", "");
    for (let up = mark.parentElement; up; up = up.parentElement) if (up.localName === "details") up.setAttribute("open", "");
  }
  (marks[i] ?? [])[0]?.scrollIntoView({ block: "center" });
  rows[i]?.classList.add("here");
  if (rows[i]?.offsetParent) rows[i].scrollIntoView({ block: "nearest" });
  seen.add(i);
  card(i);
  count();
  if (speak) say(`Block ${i + 1} of ${n}, ${word(i)}, probability ${number(blocks[i].p)}: ${texts[i].slice(0, 120)}`);
}
function step(by) {
  const next = by > 0 ? doubts.find(i => i > current) : doubts.findLast(i => i < current);
  if (next === undefined) return say(doubts.length ? "No more uncertain blocks on this side" : "No block is uncertain");
  choose(next, true);
}
function say(text) {
  by("live").textContent = "";
  clearTimeout(asked);
  asked = setTimeout(() => { by("live").textContent = text; }, 60);
}

// ---------------------------------------------------------------- the page in its frame
const POLICY = "default-src 'none'; img-src data:";
const frame = by("frame");
const OURS = `
[${MARK}] { cursor: pointer !important; -webkit-box-decoration-break: clone; box-decoration-break: clone; }
${[...Array(10).keys()].map(k => `[data-dripper-tint="${k}"] { background-color: rgb(24 160 110 / ${(k * 0.032).toFixed(3)}) !important; }`).join("\n")}
[data-dripper-doubt] { outline: 1px dashed #b87400 !important; outline-offset: 1px !important; }
[data-dripper-label="main"] { box-shadow: -3px 0 0 #0b7a53 !important; }
[data-dripper-label="main"]:dir(rtl) { box-shadow: 3px 0 0 #0b7a53 !important; }
[data-dripper-hand] { box-shadow: -4px 0 0 #7c4dbd !important; }
[data-dripper-hand][data-dripper-label="other"] { box-shadow: -4px 0 0 #b9a3d8 !important; }
[${MARK}]:hover { outline: 2px solid #2f7fb8 !important; }
[data-dripper-here] { outline: 3px solid #0b62d6 !important; outline-offset: 2px !important; }
img:not([src]) { outline: 1px dashed #8886; min-width: 1em; min-height: 1em; font-size: 12px; color: #777; }
`;
let own = [], ours = [], reader = [];

function sheet(text, media) {
  const one = new inner.defaultView.CSSStyleSheet(media ? { media } : {});
  one.replaceSync(text);
  return one;
}
function load() {
  inner = frame.contentDocument;
  marks = blocks.map(() => []);
  for (const mark of inner.querySelectorAll(`[${MARK}]`)) marks[mark.getAttribute(MARK) - 1]?.push(mark);
  for (const element of inner.querySelectorAll("[data-dripper-style]"))
    element.style.cssText = element.getAttribute("data-dripper-style");
  own = data.styles.map(([media, text]) => sheet(text, media));
  reader = [sheet(`${data.reader}\n[hidden] { display: block !important; }`)];
  ours = [sheet(OURS)];
  dress();
  const kept = [...blocks.keys()].filter(i => blocks[i].main);
  if (by("styled").checked && kept.filter(isShown).length < kept.length / 2) { // a page that scripts would unveil
    by("styled").checked = false;
    dress();
  }
  marks.forEach((pieces, i) => {
    const text = pieces.map(piece => piece.innerText?.trim() || piece.textContent).join(" ").replace(/\s+/g, " ").trim();
    texts[i] = text.length > UPTO ? text.slice(0, UPTO) + "…" : text;
    const { p } = blocks[i];
    for (const piece of pieces) {
      if (p !== null) piece.setAttribute("data-dripper-tint", Math.min(9, Math.floor(p * 10)));
      if (isUncertain(i)) piece.setAttribute("data-dripper-doubt", "");
    }
  });
  const blockOf = event => {
    const mark = event.target.closest?.(`[${MARK}]`);
    return mark ? mark.getAttribute(MARK) - 1 : -1;
  };
  inner.addEventListener("mouseover", event => { const i = blockOf(event); if (i >= 0 && i < n) card(i); });
  inner.documentElement.addEventListener("mouseleave", () => { if (current >= 0) card(current); });
  quiet(inner, event => { const i = blockOf(event); if (i >= 0 && i < n) { choose(i); flip(i); } });
  inner.addEventListener("keydown", pressed);
  recall();
  list();
  blocks.forEach((_, i) => paint(i));
  count();
  document.documentElement.dataset.ready = "true";
}
/** Put the style sheets of the page, or ours for reading, on it. Sheets made this way are under no policy of styles. */
function dress() {
  const plain = !by("styled").checked;
  inner.adoptedStyleSheets = [...(plain ? reader : own), ...ours];
  frame.classList.toggle("plain", plain);
  for (const element of inner.querySelectorAll("[data-dripper-style]"))
    element.style.cssText = plain ? "" : element.getAttribute("data-dripper-style");
}
/** Let no click of a frame lead anywhere. */
function quiet(document, clicked = () => {}) {
  for (const kind of ["click", "auxclick", "submit", "dragstart"])
    document.addEventListener(kind, event => {
      event.preventDefault();
      event.stopPropagation();
      if (kind === "click") clicked(event);
    }, true);
}
/** Return a frame with HTML of ours, without what would have to be loaded. */
function framed(html, title) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  for (const name of ["src", "srcset", "poster", "data"])
    for (const element of parsed.querySelectorAll(`[${name}]`))
      if (!/^data:image\//i.test(element.getAttribute(name))) element.removeAttribute(name);
  const { dir, lang } = parsed.documentElement;
  const one = make("iframe", { title, className: "plain" });
  one.setAttribute("sandbox", "allow-same-origin");
  one.addEventListener("load", () => quiet(one.contentDocument));
  one.srcdoc = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${
    POLICY}; style-src 'unsafe-inline'"><style>${data.reader}</style>`;
  one.addEventListener("load", () => {
    Object.assign(one.contentDocument.documentElement, { dir: dir || parsed.body.dir, lang });
    one.contentDocument.body.append(...[...parsed.body.childNodes].map(node => one.contentDocument.importNode(node, true)));
  }, { once: true });
  return one;
}

// ---------------------------------------------------------------- tabs
const TABS = [
  ["blocks", "Blocks"], ["main_html", "Main-HTML"], ["markdown", "Markdown"], ["text", "Text"],
  ["content", "Content list"], ["simplified", "Simplified"],
];
const panels = {};

function tabs() {
  for (const [name, title] of TABS) {
    const tab = make("button", { type: "button", role: "tab", id: `tab-${name}` }, title);
    tab.setAttribute("aria-controls", `panel-${name}`);
    tab.addEventListener("click", () => open(name));
    by("tabs").append(tab);
    panels[name] = make("div", { role: "tabpanel", id: `panel-${name}`, tabIndex: 0, hidden: true });
    panels[name].setAttribute("aria-labelledby", `tab-${name}`);
    by("panels").append(panels[name]);
  }
  by("tabs").addEventListener("keydown", event => {
    const at = TABS.findIndex(([name]) => !panels[name].hidden);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const [name] = TABS[(to + TABS.length) % TABS.length];
    open(name);
    by(`tab-${name}`).focus();
  });
}
function open(name) {
  for (const [other] of TABS) {
    panels[other].hidden = other !== name;
    by(`tab-${other}`).setAttribute("aria-selected", other === name);
    by(`tab-${other}`).tabIndex = other === name ? 0 : -1;
  }
  if (name !== "blocks" && !panels[name].hasChildNodes()) fill(name);
}
function fill(name) {
  if (name === "main_html") return both(name, data.forms.main_html.text, "");
  if (name === "markdown") return both(name, data.markdown_html,
    "Markdown is rendered by markdown-it-py: pip install 'scrapy-dripper[inspect]', and inspect the page again.");
  panels[name].append(...source(name));
}
function source(name) {
  const { text, chars } = data.forms[name];
  const shown = text.length < chars ? [make("p", { className: "note" },
    `The first ${text.length.toLocaleString("en")} of ${chars.toLocaleString("en")} characters.`)] : [];
  if (!text) return [make("p", { className: "pad soft" }, "Nothing.")];
  return [...shown, make("pre", { dir: "auto", className: name === "text" ? "prose" : "" }, text)];
}
function both(name, html, missing) {
  const views = { rendered: html === null ? [make("p", { className: "pad soft" }, missing)]
    : [framed(html, "As a reader sees it")], source: source(name) };
  const note = make("p", { className: "note", role: "group", ariaLabel: "View" });
  const body = make("div", { className: "body" });
  body.style.cssText = "flex:1;min-height:0;display:flex;flex-direction:column";
  const show = which => {
    for (const button of note.children) button.setAttribute("aria-pressed", button.value === which);
    body.replaceChildren(...views[which]);
  };
  for (const which of ["rendered", "source"]) {
    const button = make("button", { type: "button", value: which }, which);
    button.addEventListener("click", () => show(which));
    note.append(button);
  }
  panels[name].append(note, body);
  show(html === null ? "source" : "rendered");
}
function list() {
  const panel = panels.blocks;
  if (!n) return panel.replaceChildren(make("p", { className: "pad soft" }, data.no_task || "The page has no blocks."));
  const items = make("ol", { className: "blocks" });
  rows = blocks.map((block, i) => {
    const box = make("input", { type: "checkbox" });
    const row = make("li", { className: isUncertain(i) ? "doubt" : "" }, make("label", {},
      make("span", { className: "id" }, `${i + 1}`), box, make("span", { className: "p" }, number(block.p)),
      make("span", { className: "text", dir: "auto" }, texts[i] || "(not shown)")));
    row.box = box;
    box.setAttribute("aria-label", `block ${i + 1}, probability ${number(block.p)}: ${texts[i].slice(0, 160)}`);
    box.addEventListener("change", () => { choose(i); flip(i); });
    row.addEventListener("mouseenter", () => card(i));
    items.append(row);
    return row;
  });
  const why = data.no_task ? [make("p", { className: "note" }, `Labels of this page cannot be exported: ${data.no_task}.`)] : [];
  panel.replaceChildren(...why, items);
}
// ---------------------------------------------------------------- keys, export, memory
const KEYS = {
  j: ["next uncertain block", () => step(1)], k: ["previous uncertain block", () => step(-1)],
  n: ["next block", () => choose(Math.min(n - 1, current + 1), true)], p: ["previous block", () => choose(Math.max(0, current - 1), true)],
  x: ["flip the label", () => flip()], m: ["main, and on", () => decide(1)], o: ["other, and on", () => decide(0)],
  s: ["skip: leave it, and on", () => step(1)], u: ["undo", undo], e: ["export the labels", save],
  "?": ["this help", () => by("overlay").showModal()],
};
function pressed(event) {
  const field = event.target.closest?.("input:not([type=checkbox], [type=range]), select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || field || !by("listen").checked || by("overlay").open) return;
  const key = KEYS[event.key];
  if (!key) return;
  event.preventDefault();
  key[1]();
}
function save() {
  if (!data.task) return say(`Labels cannot be exported: ${data.no_task}`);
  const answer = { task: data.task, labels: Object.fromEntries(labels.map((label, i) => [i + 1, label ? "main" : "other"])) };
  const link = make("a", { download: `${data.task.id.replace(/-[0-9a-f]{8}$/, "")}.answer.json` });
  link.href = URL.createObjectURL(new Blob([JSON.stringify(answer, null, 1)], { type: "application/json" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  say(`Saved as ${link.download}`);
}
const place = data.task && `scrapy-dripper:inspect:${data.task.sha256}`;
function keep() {
  const mine = [...hand.keys()].filter(i => hand[i]).map(i => `${i}:${labels[i]}`);
  try { if (place) localStorage.setItem(place, mine.join(" ")); } catch { /* private window */ }
}
function recall() {
  let mine = "";
  try { mine = (place && localStorage.getItem(place)) || ""; } catch { /* private window */ }
  for (const [i, label] of mine.split(" ").map(one => one.split(":").map(Number)))
    if (i < n && (label === 0 || label === 1)) { labels[i] = label; hand[i] = true; }
}

// ---------------------------------------------------------------- begin
const threshold = by("threshold");
by("title").textContent = data.title || data.name || "(no title)";
by("address").textContent = data.url || data.name;
by("facts").append(...data.facts.map(([name, value]) => make("li", {}, make("b", {}, name), value)));
by("keys").append(...Object.entries(KEYS).map(([key, [what]]) => make("tr", {}, make("td", {}, make("kbd", {}, key)), make("td", {}, what))));
by("card").append(make("p", { className: "soft" }, n ? "Point at a block, or press j for the next uncertain one." : ""));
threshold.dataset.now = "";
by("styled").checked = data.styles.length > 0;
by("export").disabled = !data.task;
if (!data.task) by("export").title = data.no_task;
if (!has) for (const id of ["threshold", "reset", "next", "previous", "skip"]) by(id).disabled = true;
threshold.addEventListener("input", () => cut(threshold.value / 100));
by("reset").addEventListener("click", reset);
for (const button of document.querySelectorAll("button[aria-keyshortcuts]"))
  button.addEventListener("click", KEYS[button.getAttribute("aria-keyshortcuts")][1]);
by("styled").addEventListener("change", dress);
document.addEventListener("keydown", pressed);
tabs();
open("blocks");
frame.addEventListener("load", load, { once: true });
frame.srcdoc = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${POLICY}">${data.snapshot}`;
