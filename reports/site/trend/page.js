/** The trend page: one HTML file that asks for nothing else. */
import { createHash } from "node:crypto";

import { renderChart, renderLegend } from "./chart.js";
import { commitLink, escape, linked, runName } from "./html.js";
import { quantity } from "./units.js";

const FEWEST_ROWS = 5; // more only where more limits are broken
const MOST_ROWS = 12;

/** Runs in the reader's browser: shows the cases that match, and opens their groups. */
const FILTER = `
const pick = (id) => document.getElementById(id);
const groups = [...document.querySelectorAll("details.group")];
const opened = new Map(groups.map((group) => [group, group.open]));
function apply() {
  const words = pick("text").value.toLowerCase().split(/\\s+/).filter(Boolean);
  const [board, broken] = [pick("board").value, pick("broken").checked];
  for (const group of groups) {
    let shown = 0;
    for (const item of group.querySelectorAll(".case")) {
      const text = item.dataset.text;
      item.hidden = (broken && !item.dataset.broken) || (board && board !== group.dataset.board)
        || !words.every((word) => text.includes(word));
      shown += !item.hidden;
    }
    group.hidden = !shown;
    group.open = words.length || board || broken ? shown > 0 : opened.get(group);
  }
}
for (const id of ["text", "board", "broken"]) pick(id).addEventListener("input", apply);
`;

/**
 * @param {{runs: object[], groups: object[]}} model
 * @param {{title: string, remark: string, style: string, home: string}} words
 * @returns {string}
 */
export function renderPage(model, { title, remark, style, home }) {
  const policy = `default-src 'none'; img-src data:; style-src '${hash(style)}'; script-src '${hash(FILTER)}'; base-uri 'none'; form-action 'none'`;
  const body = model.runs.length ? [table(model), filter(model), current(model), past(model)] : [EMPTY];
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Trend · ${escape(title)}</title>
<style>${style}</style>
<nav>${linkHome(home)}</nav>
<h1>Trend · ${escape(title)}</h1>
<p class="soft">${[air(model), span(model)].filter(Boolean).join(" ")}</p>
${remark && hasVirtual(model) ? `<p class="remark">${escape(remark)}</p>` : ""}
${body.join("\n")}
<script>${FILTER}</script>
</html>
`;
}

const EMPTY = "<p>No run has measured anything yet.</p>";

const linkHome = (home) => `<a href="${escape(home)}">← Verdict</a>`;

const hash = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

const hasVirtual = ({ groups, past: earlier }) => [...groups, ...earlier].some(({ kind }) => kind === "virtual");

/** The virtual air that was measured over; runs over another one are other series. */
function air({ reported }) {
  const profiles = [...new Set(reported.map(({ profile }) => profile).filter(Boolean))];
  return profiles.length ? `Air profile ${escape(profiles.join(", "))}.` : "";
}

function span({ runs, dropped }) {
  if (!runs.length) return "";
  const name = (run) => `${linked(commitLink(run), escape(runName(run)))} of ${escape(run.started_utc.slice(0, 10))}`;
  const all = dropped ? `The newest ${runs.length} of ${runs.length + dropped} runs` : `${runs.length} runs`;
  const count = runs.length === 1 && !dropped ? "One run" : all;
  const range = runs.length === 1 ? name(runs[0]) : `${name(runs[0])} to ${name(runs.at(-1))}`;
  return `${count}: ${range}. A dashed line is a limit; a red dot lies beyond it, a hollow one is advice or not provable.`;
}

/** The series nearest to their limits, or beyond; each row leads to its chart. */
function table({ groups }) {
  const rows = groups.flatMap((group) => group.cases.flatMap((item) => item.charts.map((chart) => ({ group, item, chart }))))
    .filter(({ chart }) => chart.rank.closeness >= 0)
    .sort((a, b) => b.chart.rank.broken - a.chart.rank.broken || b.chart.rank.closeness - a.chart.rank.closeness);
  if (!rows.length) return "";
  const shown = Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, rows.filter(({ chart }) => chart.rank.broken).length));
  return `<h2>Nearest to their limits</h2><div class="scroll"><table><thead><tr><th>Board<th>Case<th>Metric<th class="n">Now<th class="n">Limit<th class="n">Of limit</thead>
<tbody>${rows.slice(0, shown).map(row).join("")}</tbody></table></div>`;
}

function row({ group, item, chart }) {
  const { stat, metric } = nearest(chart);
  const share = metric.limit ? `${Math.round((metric.value / metric.limit) * 100)} %` : "–";
  const state = chart.rank.broken ? ` bad` : "";
  const where = `<a href="#${chartId(group, item, chart)}">${escape(`${chart.name} ${stat}`.trim())}</a>`;
  return `<tr><td>${boardName(group)}<td>${escape(caseName(group, item))}<td>${where}<td class="n${state}">${metric.at_least ? "≥ " : ""}${quantity(metric.value, chart.unit)}<td class="n">${quantity(metric.limit, chart.unit)}<td class="n${state}">${share}`;
}

/** "publish transport=tls"; the bench alone where all parameters are the defaults. */
const caseName = ({ bench }, { label }) => (label === "defaults" ? bench : `${bench} ${label}`);

/** The line of a chart that its rank comes from. */
function nearest({ lines, rank }) {
  const newest = lines.map(({ stat, now }) => ({ stat, metric: now }));
  const limited = newest.filter(({ metric }) => metric?.limit !== undefined);
  const share = ({ metric: { value, limit, direction } }) => (direction === "higher" ? limit / value : value / limit);
  return limited.find((line) => rank.closeness === share(line)) ?? limited[0];
}

function filter({ groups, past: earlier }) {
  const boards = [...new Set([...groups, ...earlier].map(({ board }) => board))].sort();
  const options = boards.map((board) => `<option>${escape(board)}</option>`).join("");
  return `<h2>Every series</h2><form class="filter"><input type="search" id="text" placeholder="Filter: transport=tls latency" aria-label="Filter">
<label>Board <select id="board"><option value="">all</option>${options}</select></label>
<label><input type="checkbox" id="broken"> limit broken now</label></form>`;
}

function current({ groups }) {
  return groups.length ? groups.map(renderGroup).join("\n") : "<p>The run that is reported measured nothing.</p>";
}

/** Cases that were measured some time ago: in grey, with the date, and without a word on how they stand. */
function past({ past: earlier }) {
  if (!earlier.length) return "";
  const groups = earlier.map((group) => `<details class="group past" data-board="${escape(group.board)}">
<summary>${groupName(group)} <span class="soft">${cases(group)}, ${lastMeasured(newest(group))}</span></summary>
${group.cases.map((item) => renderCase(group, item)).join("\n")}
</details>`);
  return `<h2 class="soft">Not measured in this run</h2>${groups.join("\n")}`;
}

const cases = ({ cases: items }) => `${items.length} case${items.length === 1 ? "" : "s"}`;

const newest = (group) => group.cases.map(({ last }) => last).reduce((a, b) => (a.started_utc > b.started_utc ? a : b));

const lastMeasured = (run) => `last measured ${escape(run.started_utc.slice(0, 16).replace("T", " "))}`;

const groupName = (group) =>
  `${escape(group.bench)} on ${boardName(group)}${group.profile ? `<span class="soft">air ${escape(group.profile)}</span>` : ""}`;

function renderGroup(group, index) {
  const broken = group.cases.filter(({ rank }) => rank.broken).length;
  const state = broken ? `<span class="bad">${broken} of ${cases(group)} over a limit</span>` : `<span class="soft">${cases(group)}</span>`;
  const open = index === 0 || broken ? " open" : "";
  return `<details class="group" data-board="${escape(group.board)}"${open}>
<summary>${groupName(group)} ${state}</summary>
${group.cases.map((item) => renderCase(group, item)).join("\n")}
</details>`;
}

function renderCase(group, item) {
  const limited = item.charts.filter(isLimited);
  const others = item.charts.filter((chart) => !isLimited(chart));
  const text = [group.bench, group.board, group.kind, group.target, item.id, item.label, ...item.charts.map(({ name }) => name)];
  const figures = (charts) => `<div class="charts">${charts.map((chart) => figure(group, item, chart)).join("")}</div>`;
  const more = others.length && limited.length
    ? `<details class="more"><summary>${others.length} more without a limit: ${escape(others.map(({ name }) => name).join(", "))}</summary>${figures(others)}</details>`
    : figures(others);
  return `<section class="case" data-text="${escape(text.join(" ").toLowerCase())}"${item.rank.broken ? ' data-broken="1"' : ""}>
<h3>${escape(item.label)}${item.measured ? "" : ` <small>${lastMeasured(item.last)}</small>`}</h3>${limited.length ? figures(limited) : ""}${more}</section>`;
}

const isLimited = ({ lines }) => lines.some(({ points }) => points.at(-1).metric.limit !== undefined);

function figure(group, item, chart) {
  const title = `${chart.name} · ${group.board} (${group.kind})`;
  return `<figure id="${chartId(group, item, chart)}"><figcaption>${escape(chart.name)} <small>${boardName(group)}</small></figcaption>
<ul class="legend">${renderLegend(chart, !item.measured)}</ul>${renderChart(chart, title)}</figure>`;
}

const boardName = ({ board, kind }) => escape(`${board} (${kind})`);

const chartId = (group, item, { name, unit }) =>
  `c${createHash("sha256").update([group.key, item.id, name, unit].join("\n")).digest("hex").slice(0, 12)}`;
