// SPDX-License-Identifier: Apache-2.0
/** Limits: those that are broken now, in the open; and, folded, those that are nearest. */
import { html } from "htm/preact";

import { caseWords, count } from "./facts.js";
import { closeness, pointAt, stands } from "./model.js";
import { writeState } from "./state.js";
import { quantity } from "./units.js";
import { boardWords } from "./words.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").State} State */
/** @typedef {import("./types.js").Series} Series */

const MOST_BROKEN = 4; // in the open; the others are a filter away
const MOST_NEAR = 12;

/** @param {{trend: Trend, state: State, update: (changes: Partial<State>) => void}} props */
export function BrokenLimits({ trend, state, update }) {
  const broken = limited(trend).filter((series) => stands(series) === "broken");
  if (!broken.length) return "";
  const more = broken.length - MOST_BROKEN;
  return html`<section aria-labelledby="broken-now">
    <h2 id="broken-now" class="bad">${count(broken.length, "limit")} broken now</h2>
    <${LimitTable} trend=${trend} state=${state} series=${broken.slice(0, MOST_BROKEN)} caption="Limits that the reported run breaks" />
    ${more > 0 && html`<p><button type="button" class="plain" onClick=${() => update({ broken: true })}>Show the charts of all ${broken.length}</button></p>`}
  </section>`;
}

/** @param {{trend: Trend, state: State}} props */
export function NearestLimits({ trend, state }) {
  const near = limited(trend).filter((series) => stands(series) !== "broken").slice(0, MOST_NEAR);
  if (!near.length) return "";
  return html`<details class="nearest"><summary>Nearest to their limits</summary>
    <${LimitTable} trend=${trend} state=${state} series=${near} caption="Series nearest to their limits" />
  </details>`;
}

/**
 * The series that have a limit and were measured now, the nearest to it first.
 *
 * @param {Trend} trend
 * @returns {Series[]}
 */
export function limited(trend) {
  return trend.series.map((series) => ({ series, near: closeness(series) })).filter(({ near }) => near >= 0)
    .sort((a, b) => (a.near === b.near ? 0 : b.near - a.near)).map(({ series }) => series);
}

/** "≤ 25 ms", "≥ 4 Mbit/s": the limit that holds now, with the side on which it is kept. */
export function limitWords(/** @type {Series} */ series) {
  const side = series.direction === "lower" ? "≤" : "≥";
  return `${side} ${quantity(pointAt(series, series.now).limit ?? 0, series.unit)}`;
}

function LimitTable({ trend, state, series, caption }) {
  return html`<div class="scroll"><table>
    <caption class="unseen">${caption}</caption>
    <thead><tr><th scope="col">Board</th><th scope="col">Case</th><th scope="col">Metric</th>
      <th scope="col" class="n">Now</th><th scope="col" class="n">Limit</th><th scope="col" class="n">Limit used</th></tr></thead>
    <tbody>${series.map((item) => html`<${Row} key=${item.id} trend=${trend} state=${state} series=${item} />`)}</tbody>
  </table></div>`;
}

function Row({ trend, state, series }) {
  const { value, limit } = pointAt(series, series.now);
  if (value === null || limit === null) return "";
  const tone = stands(series) === "broken" ? "n bad" : "n";
  const atLeast = (series.points.at_least ?? []).includes(series.now) ? "≥ " : "";
  const name = `${series.quantity} ${series.stat}`.trim() + (series.blocking ? "" : " (advice)");
  return html`<tr><td>${boardWords(series)}</td><td>${caseWords(series)}</td>
    <td><a href=${writeState({ ...state, chart: trend.chartOf.get(series)?.key ?? "", tab: "runs" })}>${name}</a></td>
    <td class=${tone}>${atLeast}${quantity(value, series.unit)}</td><td class="n">${limitWords(series)}</td>
    <td class=${tone}>${limit ? `${Math.round(closeness(series) * 100)} %` : "–"}</td></tr>`;
}
