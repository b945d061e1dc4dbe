const COLUMNS = [ // name, title, is a number
  ["page", "page"], ["strip", "labels"], ["page_type", "type"], ["quality", "quality", true], ["length", "length", true],
  ["main_blocks", "main blocks", true], ["milliseconds", "ms", true], ["source", "source"], ["reason", "reason"],
];
const PAGE = 200; // rows that are shown at first, and with each click
const NAMES = 10; // lines of a tile
const rows = data.rows.map(values => {
  const row = Object.fromEntries(data.columns.map((name, i) => [name, values[i]]));
  row.page = row.title || row.url;
  row.words = `${row.title}\n${row.url}`.toLowerCase();
  return row;
});
const sums = new Map(rows.map(row => [row, [...row.strip].reduce((sum, digit) => sum + Number(digit), 0) / row.strip.length]));
let sorted = { name: "quality", down: false }, found = rows, shown = PAGE;

function key(row, name) {
  const value = name === "strip" ? sums.get(row) : row[name];
  return value === null || value === "" || Number.isNaN(value) ? undefined : value;
}
/** Return rows in order; what has no value comes last, whatever the direction. */
function order(list) {
  const { name, down } = sorted;
  const texts = new Intl.Collator("en");
  return [...list].sort((a, b) => {
    const x = key(a, name), y = key(b, name);
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return (down ? -1 : 1) * (typeof x === "string" ? texts.compare(x, y) : x - y);
  });
}
function filter() {
  const words = by("find").value.toLowerCase();
  const chosen = ["source", "reason", "page_type"].map(name => [name, by(name).value]).filter(([, value]) => value !== "*");
  const bounds = [["quality", "from"], ["quality", "to"], ["length", "from"], ["length", "to"]]
    .map(([name, end]) => [name, end, by(`${name}-${end}`).valueAsNumber]).filter(([, , value]) => !Number.isNaN(value));
  found = order(rows.filter(row => row.words.includes(words) && chosen.every(([name, value]) => row[name] === value) &&
    bounds.every(([name, end, value]) => row[name] !== null && (end === "from" ? row[name] >= value : row[name] <= value))));
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
  const number = text => make("td", { className: "number" }, text);
  const low = row.quality !== null && row.quality < 0.5 ? " odd" : "";
  return make("tr", {}, page, make("td", {}, strip(row)), make("td", {}, row.page_type),
    make("td", { className: "number" + low }, row.quality === null ? "" : row.quality.toFixed(2)),
    number(row.length.toLocaleString("en")), number(row.blocks ? `${row.main_blocks} / ${row.blocks}` : ""),
    ...(by("by-milliseconds") ? [number(row.milliseconds === null ? "" : row.milliseconds.toFixed(row.milliseconds < 10 ? 1 : 0))] : []),
    make("td", {}, row.source), make("td", { className: row.reason ? "odd" : "" }, row.reason));
}
/** Return a picture of the labels, from the top of the page to its end: the deeper, the more of it is main. */
function strip(row) {
  if (!row.strip) return "";
  const parts = [...row.strip].map(Number);
  const stops = parts.map((part, i) => {
    const colour = `color-mix(in srgb, var(--main) ${Math.round(part / 9 * 100)}%, transparent)`;
    return `${colour} ${i / parts.length * 100}% ${(i + 1) / parts.length * 100}%`;
  });
  const share = Math.round(sums.get(row) / 9 * 100);
  const picture = make("span", { className: "strip", role: "img", title: `${share} % of the blocks are main` });
  picture.setAttribute("aria-label", picture.title);
  picture.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  return picture;
}
function tiles() {
  const tile = (title, ...content) => make("div", { className: "tile" }, make("h2", {}, title), ...content);
  const shown = counts => counts.length <= NAMES ? counts : [...counts.slice(0, NAMES - 1),
    [`${counts.length - NAMES + 1} others`, counts.slice(NAMES - 1).reduce((sum, [, count]) => sum + count, 0)]];
  const counted = Object.entries(data.counts).map(([kind, counts]) => tile(`By ${kind}`, make("dl", {},
    ...shown(counts).flatMap(([name, count]) => {
      const bar = make("i");
      bar.style.width = `${count / data.pages * 100}%`;
      return [make("dt", {}, name), make("dd", {}, `${count.toLocaleString("en")} · ${(count / data.pages * 100).toFixed(1)} %`),
        make("dd", { className: "share", ariaHidden: "true" }, bar)];
    }))));
  const rest = data.lines.filter(([name]) => !name.startsWith("by "));
  const facts = make("dl", { className: "facts" }, make("dt", {}, "pages"), make("dd", {}, data.pages.toLocaleString("en")),
    ...rest.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
  by("story").append(tile("In all", facts), ...counted);
}
function choices(name) {
  const values = [...new Set(rows.map(row => row[name]))].sort();
  by(name).append(make("option", { value: "*" }, "any"),
    ...values.map(value => make("option", { value }, value || "none")));
}

by("title").textContent = data.name;
by("notes").append(...data.notes.map(note => make("p", {}, note)));
tiles();
for (const name of ["source", "reason", "page_type"]) choices(name);
const there = COLUMNS.filter(([name]) => name !== "milliseconds" || rows.some(row => row[name] !== null));
for (const [name, title, isNumber] of there) {
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
by("filters").addEventListener("input", filter);
by("filters").addEventListener("reset", () => setTimeout(filter));
by("filters").addEventListener("submit", event => event.preventDefault());
by("more").addEventListener("click", () => { shown += PAGE; draw(); });
filter();
document.documentElement.dataset.ready = "true";
