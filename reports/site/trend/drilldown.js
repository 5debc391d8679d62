// SPDX-License-Identifier: Apache-2.0
/** One chart in depth: over time, the newest runs as a table, what stands behind the reported run, and links to its files. */
import { html } from "htm/preact";
import { useState } from "preact/hooks";

import { Legend, TrendChart } from "./chart.js";
import { Detail } from "./detail.js";
import { Dialog } from "./dialog.js";
import { Statistics } from "./filters.js";
import { commitLink, placeLink, safeLink } from "./html.js";
import { excess, pointsOf } from "./points.js";
import { boardAndKind, excessWords, runName, runWords, timeOf, valueWords } from "./words.js";

const ROWS = 30;
const LARGE_PX = 320;
const KEY = `A change by ▲ ▼ the firmware, ◆ this board alone, ○ the surroundings, ? something unclear · dashed: limit
  · dotted: reference firmware · shaded: 95 % interval · level line: between two changes · drag to enlarge, double click for all`;

/** @param {{trend: Trend, chart: Chart, state: State, update: Update}} props */
export function Drilldown({ trend, chart, state, update }) {
  const [chosen, choose] = useState(-1);
  const { bench, label, target, profile, lines } = chart;
  const context = [bench, label, target, profile && `air ${profile}`].filter(Boolean).join(" · ");
  const title = html`${chart.quantity} <span class="soft">on</span> ${boardAndKind(chart)}`;
  return html`<${Dialog} name="drill" title=${title} onClose=${() => update({ chart: "" })}>
    <p class="soft">${context}</p>
    <${Statistics} series=${lines.map(({ series }) => series)} chosen=${state.stat} update=${update} />
    <${Legend} chart=${chart} stats=${state.stat} />
    <${TrendChart} ...${{ trend, chart, stats: state.stat, height: LARGE_PX, zoom: true, onRun: choose }} />
    <p class="soft key">${KEY}</p>
    ${chosen >= 0 && html`<${ChosenRun} trend=${trend} chart=${chart} run=${chosen} />`}
    <${Detail} trend=${trend} chart=${chart} />
    <${RunTable} trend=${trend} chart=${chart} />
    <${Links} trend=${trend} chart=${chart} /><//>`;
}

const linked = (/** @type {string} */ address, /** @type {string} */ text) => (safeLink(address) ? html`<a href=${address}>${text}</a>` : text);
const commitOf = (/** @type {Trend} */ { runs }, /** @type {number} */ run) => commitLink({ url: runs.url[run], commit: runs.commit[run] });

/** The run that was clicked, with its links. */
function ChosenRun({ trend, chart, run }) {
  const [head, ...said] = runWords(trend, chart.lines.map((line) => ({ ...line, points: pointsOf(line.series) })), run);
  const links = [["commit", commitOf(trend, run)], ["run", trend.runs.url[run]]].filter(([, address]) => safeLink(address));
  return html`<div class="run-chosen" aria-live="polite"><b>${head}</b>
    ${links.map(([text, address]) => html`${linked(address, text)} `)}<br />${said.join(" · ")}</div>`;
}

/** The newest runs, newest first. */
function RunTable({ trend, chart }) {
  const lines = chart.lines.map(({ stat, series }) => ({ stat, series, byRun: new Map(pointsOf(series).map((point) => [point.run, point])) }));
  const runs = [...new Set(lines.flatMap(({ byRun }) => [...byRun.keys()]))].sort((a, b) => b - a);
  return html`<div class="scroll" role="region" tabindex="0" aria-label="Runs"><table class="runs">
    <caption>${runs.length > ROWS ? `The newest ${ROWS} of ${runs.length} runs` : `All ${runs.length} runs`}</caption>
    <thead><tr><th scope="col">run</th><th scope="col">commit</th>
      ${lines.map(({ stat }) => html`<th scope="col" class="n">${stat || chart.quantity}</th>`)}</tr></thead>
    <tbody>${runs.slice(0, ROWS).map((run) => html`<tr key=${run}><td>${linked(trend.runs.url[run], timeOf(trend, run))}</td>
      <td>${linked(commitOf(trend, run), runName(trend, run))}</td>
      ${lines.map(({ series, byRun }) => html`<${Cell} series=${series} point=${byRun.get(run)} />`)}</tr>`)}</tbody></table></div>`;
}

function Cell({ series, point }) {
  if (!point || point.value === null) return html`<td class="n soft">–</td>`;
  return html`<td class=${`n ${excess(point, series)}`}>${valueWords(point, series.unit)}${excessWords(point, series)}</td>`;
}

/** The test in the test report, and the files of the run. */
function Links({ trend, chart }) {
  const { test = "", files = [] } = trend.details[chart.key] ?? {};
  const id = test || chart.lines.find(({ series }) => series.test)?.series.test;
  const place = id && placeLink(trend.links?.tests ?? "") && `${trend.links.tests}#${encodeURIComponent(id)}`;
  const safe = files.filter(({ href }) => placeLink(href));
  const named = safe.some(({ href }) => href === place);
  return (place || safe.length > 0) && html`<footer>${place && !named && html`<a href=${place}>Test in the test report</a>`}
    ${safe.map(({ text, href }) => html`<a href=${href}>${text}</a>`)}</footer>`;
}
