// Renders a JSON list of Markdown documents from standard input with each renderer, HTML and every address let through.
import { readFileSync } from "node:fs";
import { HtmlRenderer, Parser } from "commonmark";
import { Marked } from "marked";
import MarkdownIt from "markdown-it";
import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";

const markdownIt = new MarkdownIt({ html: true, linkify: true, typographer: true });
markdownIt.validateLink = () => true;
const marked = new Marked({ gfm: true, async: false });
const parser = new Parser();
const writer = new HtmlRenderer({ safe: false });
const dangerous = { allowDangerousHtml: true, allowDangerousProtocol: true };

const renderers = {
  "commonmark.js": text => writer.render(parser.parse(text)),
  marked: text => marked.parse(text),
  "markdown-it": text => markdownIt.render(text),
  micromark: text => micromark(text, dangerous),
  "micromark with GFM": text => micromark(text, { ...dangerous, extensions: [gfm()], htmlExtensions: [gfmHtml()] }),
};

const documents = JSON.parse(readFileSync(0, "utf8"));
const rendered = Object.entries(renderers).map(([name, render]) => [name, documents.map(render)]);
process.stdout.write(JSON.stringify(Object.fromEntries(rendered)));
