// SPDX-License-Identifier: Apache-2.0
/** Limits and how much of each is used: those that are broken now, in the open; folded, those that are nearest. */
import { html } from "htm/preact";

import { closeness } from "./model.js";
import { pointNow, stands } from "./points.js";
import { writeState } from "./state.js";
import { quantity } from "./units.js";
import { boardWords, caseWords, count, metricWords, valueWords } from "./words.js";

const MOST_BROKEN = 4; // in the open; the others are a filter away
const MOST_NEAR = 12;
const FEW = 3; // runs of a series from which on its chart says something
const FULL = 0.8; // of a bar: the limit

/** Whether no series has enough runs for a chart. */
export const hasFewRuns = (/** @type {Trend} */ { series }) => series.every(({ points }) => points.run.length < FEW);

/** @param {{trend: Trend, state: State, update: Update}} props */
export function Limits({ trend, state, update }) {
  const limited = trend.series.map((series) => ({ series, near: closeness(series) })).filter(({ near }) => near >= 0)
    .sort((a, b) => (a.near === b.near ? 0 : b.near - a.near)).map(({ series }) => series);
  const broken = limited.filter((series) => stands(series) === "broken");
  const near = limited.filter((series) => !broken.includes(series)).slice(0, MOST_NEAR);
  const few = hasFewRuns(trend);
  return html`${broken.length > 0 && html`<section aria-labelledby="broken-now">
      <h2 id="broken-now" class="bad">${count(broken.length, "limit")} broken now</h2>
      <${LimitTable} ...${{ trend, state, series: broken.slice(0, MOST_BROKEN), caption: "Limits that the reported run breaks" }} />
      ${broken.length > MOST_BROKEN && html`<p><button type="button" class="plain" onClick=${() => update({ broken: true })}>
        Show the charts of all ${broken.length}</button></p>`}</section>`}
    ${near.length > 0 && html`<details class="nearest" open=${few}>
      <summary>Nearest to their limits${few && ": from three runs on each series has a chart"}</summary>
      <${LimitTable} ...${{ trend, state, series: near, caption: "Series nearest to their limits" }} /></details>`}`;
}

function LimitTable({ trend, state, series, caption }) {
  return html`<div class="scroll"><table class="limits">
    <caption class="unseen">${caption}</caption>
    <thead><tr><th scope="col">Board</th><th scope="col">Case</th><th scope="col">Metric</th>
      <th scope="col" class="n">Now</th><th scope="col" class="n">Limit</th><th scope="col">Limit used</th></tr></thead>
    <tbody>${series.map((item) => html`<${Row} key=${item.id} trend=${trend} state=${state} series=${item} />`)}</tbody></table></div>`;
}

function Row({ trend, state, series }) {
  const { value, limit } = pointNow(series);
  const used = closeness(series);
  const bad = stands(series) === "broken" ? "bad" : used > 1 ? "unsure" : "";
  const atLeast = (series.points.at_least ?? []).includes(series.now);
  return html`<tr><td>${boardWords(series)}</td><td>${caseWords(series)}</td>
    <td><a href=${writeState({ ...state, chart: trend.chartOf.get(series).key })}>${metricWords(series)}</a>${!series.blocking && " (advice)"}</td>
    <td class=${`n ${bad}`}>${valueWords({ value, atLeast }, series.unit)}</td>
    <td class="n">${series.direction === "lower" ? "≤" : "≥"} ${quantity(limit ?? 0, series.unit)}</td>
    <td class="used"><meter aria-hidden="true" max="1" low=${FULL} high=${bad === "bad" ? FULL : 1} optimum="0"
      value=${Math.min(1, used * FULL)}></meter>
      <b class=${bad}>${Number.isFinite(used) && limit ? `${Math.round(used * 100)} %` : used > 1 ? "exceeded" : "–"}</b></td></tr>`;
}
