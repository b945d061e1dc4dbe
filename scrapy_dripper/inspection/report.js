"use strict";
const by = id => document.getElementById(id);
const rows = [...by("pages").tBodies[0].rows];
const filters = [by("host"), by("reason")];
const number = count => count.toLocaleString("en");

function show() {
  for (const row of rows) row.hidden = filters.some(({ id, value }) => value !== "*" && value !== row.dataset[id]);
  const shown = rows.filter(row => !row.hidden).length;
  by("shown").textContent = `${number(shown)} of ${number(rows.length)} pages`;
}
for (const filter of filters) {
  const counts = new Map();
  for (const { dataset } of rows) counts.set(dataset[filter.id], (counts.get(dataset[filter.id]) ?? 0) + 1);
  const common = [...counts].sort((a, b) => b[1] - a[1]);
  filter.append(...common.map(([value, count]) => new Option(`${value || "none"} (${number(count)})`, value)));
  filter.addEventListener("change", show);
}
by("pages").addEventListener("click", event => {
  const button = event.target.closest("button");
  if (!button) return;
  const url = button.closest("tr").querySelector("a").getAttribute("href");
  const command = by("command");
  command.textContent = `${command.dataset.start} '${url.replaceAll("'", "'\\''")}'`;
  getSelection().selectAllChildren(command);
  const say = text => { by("copied").textContent = text; };
  const byHand = () => { say("The command is selected: copy it"); command.scrollIntoView({ block: "center" }); };
  if (navigator.clipboard) navigator.clipboard.writeText(command.textContent).then(() => say("The command is copied"), byHand);
  else byHand();
});
by("filters").hidden = false;
show();
