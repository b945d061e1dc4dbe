// The texts of Readability.js, a line of JSON for each page, as benchmarks/facts.py reads them:
//
//     npm install @mozilla/readability@0.6.0 jsdom@24.1.3
//     node benchmarks/readability.js .cache/facts/html readability.jsonl
//
// Each process extracts a few pages, because jsdom frees no memory. A run that was stopped can be resumed.

const fs = require("fs");
const path = require("path");
const { spawnSync } = require("child_process");
const { Readability } = require("@mozilla/readability");
const { JSDOM, VirtualConsole } = require("jsdom");

const TOGETHER = 60;
const LARGEST = 3e6; // bytes; jsdom takes minutes for more
const BLOCKS = "p,div,li,h1,h2,h3,h4,h5,h6,tr,br,td,th,pre,blockquote,dt,dd,figcaption,section,article";
const virtualConsole = new VirtualConsole(); // says nothing about scripts and styles that are not loaded

function textOf(html) {
  if (html.length > LARGEST) return "";
  try {
    const page = new JSDOM(html, { url: "https://example.org/", virtualConsole }).window.document;
    const article = new Readability(page).parse();
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
const files = fs.readdirSync(folder).filter((name) => name.endsWith(".html") && !done.has(name.slice(0, -5))).sort();
for (const name of files.slice(0, TOGETHER)) {
  const text = textOf(fs.readFileSync(path.join(folder, name)));
  fs.appendFileSync(out, JSON.stringify({ id: name.slice(0, -5), text }) + "\n");
}
console.error(`${done.size + Math.min(files.length, TOGETHER)} of ${done.size + files.length} pages`);
if (files.length > TOGETHER) process.exitCode = spawnSync(process.execPath, process.argv.slice(1), { stdio: "inherit" }).status;
