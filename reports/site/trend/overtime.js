// SPDX-License-Identifier: Apache-2.0
/** A figure over time, large: all its statistics, the run that was chosen, the newest runs as a table. */
import { html } from "htm/preact";
import { useState } from "preact/hooks";

import { Legend, TrendChart } from "./chart.js";
import { commitLink, safeLink } from "./html.js";
import { excess, linesOf, pointsOf } from "./points.js";
import { runName } from "./scale.js";
import { excessWords, runWords, valueWords } from "./words.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").Chart} Chart */

const ROWS = 30;
const LARGE_PX = 340;
const SMALL_PX = 230;

/**
 * @param {{trend: Trend, chart: Chart, width?: number}} props  width in pixels
 */
export function OverTime({ trend, chart, width = 900 }) {
  const [stat, setStat] = useState("");
  const [log, setLog] = useState(false);
  const [chosen, choose] = useState(-1);
  const stats = chart.lines.some((line) => line.stat === stat && stat) ? [stat] : [];
  const several = chart.lines.length > 1;
  return html`<div class="over-time">
    <div class="choices">
      ${several && html`<span role="group" aria-label="Statistic">${["", ...chart.lines.map((line) => line.stat)].map((each) => html`
        <button type="button" key=${each} aria-pressed=${String(each === (stats[0] ?? ""))} onClick=${() => setStat(each)}>${each || "all"}</button>`)}</span>`}
      <label><input type="checkbox" checked=${log} onChange=${() => setLog(!log)} /> logarithmic</label>
    </div>
    <${Legend} trend=${trend} chart=${chart} stats=${stats} />
    <${TrendChart} ...${{ trend, chart, stats, width, log, height: width < 560 ? SMALL_PX : LARGE_PX, onRun: choose }} />
    <${Key} trend=${trend} chart=${chart} />
    ${chosen >= 0 && html`<${ChosenRun} trend=${trend} chart=${chart} run=${chosen} />`}
    <${RunTable} trend=${trend} chart=${chart} />
  </div>`;
}

/** What the marks mean; only those that this chart has. */
function Key({ trend, chart }) {
  const all = chart.lines.map(({ series }) => series);
  const causes = new Set(all.flatMap(({ changes }) => changes.map(({ event }) => trend.events[event]?.cause ?? "unclear")));
  const has = (/** @type {"low"|"reference"} */ column) => all.some(({ points }) => (points[column] ?? []).some((value) => value !== null));
  const parts = [
    causes.has("firmware") && "▲ ▼ changed by the firmware", causes.has("board") && "◆ by this board alone",
    causes.has("environment") && "○ by the surroundings", causes.has("unclear") && "? of unclear cause",
    has("low") && "shaded: 95 % interval of the median over boots", has("reference") && "dotted: reference firmware",
    all.some(({ levels }) => levels.length) && "level line: between two changes, with its interval",
    all.some(({ points }) => (points.limit ?? []).some(([, limit]) => limit !== null)) && "dashed: limit",
  ].filter(Boolean);
  return parts.length > 0 && html`<p class="soft key">${parts.join(" · ")}</p>`;
}

/** The run that was clicked, with its links. */
function ChosenRun({ trend, chart, run }) {
  const lines = chart.lines.map((line) => ({ line, points: pointsOf(line.series) }));
  const { head, lines: said } = runWords(trend, lines, run);
  const { url, commit } = { url: trend.runs.url[run] ?? "", commit: trend.runs.commit[run] };
  const links = [["commit", commitLink({ url, commit })], ["run", url]].filter(([, address]) => safeLink(address));
  return html`<div class="run-chosen" aria-live="polite"><b>${head}</b> ${links.map(([text, address]) => html`
    <a href=${safeLink(address)}>${text}</a> `)}<br />${said.join(" · ")}</div>`;
}

/** The newest runs, newest first. */
function RunTable({ trend, chart }) {
  const lines = linesOf(chart).map(({ stat, series }) => ({ stat, series, byRun: new Map(pointsOf(series).map((point) => [point.run, point])) }));
  const runs = [...new Set(lines.flatMap(({ byRun }) => [...byRun.keys()]))].sort((a, b) => b - a);
  const shown = runs.slice(0, ROWS);
  const told = runs.length > ROWS ? `The newest ${ROWS} of ${runs.length} runs` : `All ${runs.length} runs`;
  return html`<div class="scroll" role="region" tabindex="0" aria-label="Runs"><table class="runs">
    <caption>${told}</caption>
    <thead><tr><th scope="col">run</th><th scope="col">commit</th>
      ${lines.map(({ stat }) => html`<th scope="col" class="n">${stat || chart.quantity}</th>`)}</tr></thead>
    <tbody>${shown.map((run) => html`<tr key=${run}><td>${linked(trend.runs.url[run], trend.runs.started_utc[run].slice(0, 16).replace("T", " "))}</td>
      <td>${linked(commitLink({ url: trend.runs.url[run] ?? "", commit: trend.runs.commit[run] }), runName(trend, run))}</td>
      ${lines.map(({ series, byRun }) => html`<${Cell} series=${series} point=${byRun.get(run)} />`)}</tr>`)}</tbody>
  </table></div>`;
}

function Cell({ series, point }) {
  if (!point || point.value === null) return html`<td class="n soft">–</td>`;
  return html`<td class=${`n ${excess(point, series)}`}>${valueWords(point, series.unit)}${excessWords(point, series)}</td>`;
}

const linked = (address, text) => (safeLink(address) ? html`<a href=${safeLink(address)}>${text}</a>` : text);
