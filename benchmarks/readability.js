// The texts of Readability.js as lines of JSON, for benchmarks/facts.py, after npm install @mozilla/readability@0.6.0
// jsdom@24.1.3: node benchmarks/readability.js .cache/facts/html readability.jsonl
// Each process extracts 60 pages, because jsdom frees no memory. A run that was stopped can be resumed.
const fs = require("fs");
const { spawnSync } = require("child_process");
const { Readability } = require("@mozilla/readability");
const { JSDOM, VirtualConsole } = require("jsdom");

const LARGEST = 3e6; // bytes; jsdom takes minutes for more
const BLOCKS = "p,div,li,h1,h2,h3,h4,h5,h6,tr,br,td,th,pre,blockquote,dt,dd,figcaption,section,article";
const virtualConsole = new VirtualConsole(); // says nothing about scripts and styles that are not loaded

function textOf(html) {
  if (html.length > LARGEST) return "";
  try {
    const article = new Readability(new JSDOM(html, { url: "https://example.org/", virtualConsole }).window.document).parse();
    const body = new JSDOM(`<body>${article ? article.content : ""}`, { virtualConsole }).window.document.body;
    for (const element of body.querySelectorAll(BLOCKS)) element.append("\n");
    return body.textContent;
  } catch {
    return "";
  }
}

const [folder, out] = process.argv.slice(2);
const lines = fs.existsSync(out) ? fs.readFileSync(out, "utf8").split("\n").filter(Boolean) : [];
const done = new Set(lines.map((line) => JSON.parse(line).id));
const ids = fs.readdirSync(folder).filter((name) => name.endsWith(".html")).map((name) => name.slice(0, -5));
const left = ids.filter((id) => !done.has(id)).sort();
for (const id of left.slice(0, 60)) {
  fs.appendFileSync(out, JSON.stringify({ id, text: textOf(fs.readFileSync(`${folder}/${id}.html`)) }) + "\n");
}
console.error(`${ids.length - Math.max(0, left.length - 60)} of ${ids.length} pages`);
if (left.length > 60) process.exitCode = spawnSync(process.execPath, process.argv.slice(1), { stdio: "inherit" }).status;
