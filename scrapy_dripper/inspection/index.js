const COLUMNS = [ // name, title, is a number
  ["page", "page"], ["strip", "labels"], ["page_type", "type"], ["quality", "quality", true], ["length", "length", true],
  ["main_blocks", "main blocks", true], ["milliseconds", "ms", true], ["source", "source"], ["reason", "reason"],
];
const PAGE = 200; // rows that are shown at first, and with each click
const texts = new Intl.Collator("en");
const rows = data.rows.map(values => {
  const row = Object.fromEntries(data.columns.map((name, i) => [name, values[i]]));
  row.page = row.title || row.url;
  row.share = [...row.strip].reduce((sum, digit) => sum + Number(digit), 0) / row.strip.length / 9;
  row.words = [row.title, row.url, row.page_type, row.source, row.reason].join("\n").toLowerCase();
  return row;
});
const shownColumns = COLUMNS.filter(([name]) => name !== "milliseconds" || rows.some(row => row.milliseconds !== null));
let sorted = { name: "quality", down: false }, found = rows, shown = PAGE;

function key(row) {
  const value = sorted.name === "strip" ? row.share : row[sorted.name];
  return value === null || value === "" || Number.isNaN(value) ? undefined : value;
}
/** Order two rows; what has no value comes last, whatever the direction. */
function compare(a, b) {
  const x = key(a), y = key(b);
  if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
  return (sorted.down ? -1 : 1) * (typeof x === "string" ? texts.compare(x, y) : x - y);
}
function filter() {
  const words = by("find").value.toLowerCase();
  found = rows.filter(row => row.words.includes(words)).sort(compare);
  shown = PAGE;
  draw();
}
function draw() {
  by("rows").replaceChildren(...found.slice(0, shown).map(line));
  by("shown").textContent = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} pages`;
  by("more").hidden = found.length <= shown;
}
function line(row) {
  const safe = /^https?:\/\//i.test(row.url);
  const name = row.title || row.url || "(no title)";
  const page = make("td", { className: "page", dir: "auto" },
    safe ? make("a", { href: row.url, target: "_blank", rel: "noopener noreferrer" }, name) : name);
  if (row.title && row.url) page.append(make("span", { className: "where", dir: "ltr" }, row.url));
  const number = (value, digits = 0) => make("td", { className: "number" },
    value === null ? "" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  const quality = number(row.quality, 2);
  quality.classList.toggle("odd", row.quality !== null && row.quality < 0.5);
  const cells = { page, quality, strip: make("td", {}, strip(row)), length: number(row.length),
    main_blocks: make("td", { className: "number" }, row.blocks ? `${row.main_blocks} / ${row.blocks}` : ""),
    milliseconds: number(row.milliseconds), reason: make("td", { className: row.reason ? "odd" : "" }, row.reason) };
  return make("tr", {}, ...shownColumns.map(([name]) => cells[name] ?? make("td", {}, row[name])));
}
/** Return a picture of the labels, from the top of the page to its end: the deeper, the more of it is main. */
function strip(row) {
  if (!row.strip) return "";
  const stops = [...row.strip].map((part, i, { length }) =>
    `color-mix(in srgb, var(--main) ${Math.round(part / 9 * 100)}%, transparent) ${i / length * 100}% ${(i + 1) / length * 100}%`);
  const said = `${Math.round(row.share * 100)} % of the blocks are main`;
  const picture = make("span", { className: "strip", role: "img", title: said, ariaLabel: said });
  picture.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  return picture;
}

by("title").textContent = data.name;
by("notes").append(...data.notes.map(note => make("p", {}, note)));
by("story").append(...[["pages", data.pages.toLocaleString("en")], ...data.lines].flatMap(([name, text]) =>
  [make("dt", {}, name), make("dd", {}, text)]));
for (const [name, title, isNumber] of shownColumns) {
  const button = make("button", { type: "button" }, title);
  const head = make("th", { scope: "col", id: `by-${name}` }, button);
  button.addEventListener("click", () => {
    sorted = { name, down: sorted.name === name ? !sorted.down : Boolean(isNumber) };
    for (const other of by("head").children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
    filter();
  });
  by("head").append(head);
}
by("by-quality").setAttribute("aria-sort", "ascending");
by("find").addEventListener("input", filter);
by("filters").addEventListener("submit", event => event.preventDefault());
by("more").addEventListener("click", () => { shown += PAGE; draw(); });
filter();
document.documentElement.dataset.ready = "true";
