// SPDX-License-Identifier: Apache-2.0
/**
 * What a history of few runs shows in place of charts of one dot: how much of each limit is used.
 */
import { html } from "htm/preact";

import { caseWords, count } from "./facts.js";
import { limitWords, limited } from "./limits.js";
import { closeness, pointAt, stands } from "./model.js";
import { writeState } from "./state.js";
import { quantity } from "./units.js";
import { boardWords } from "./words.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").State} State */
/** @typedef {import("./types.js").Series} Series */

const FEW = 3; // runs of a series from which on a chart of it says something
const MOST_BARS = 20;
const WIDTH = 200; // of a bar that uses all of its limit, in pixels
const MOST = 1.25; // of a limit that a bar can show

/** Whether no series has enough runs for a chart; two racks with a run each have one. */
export const hasFewRuns = (/** @type {Trend} */ { series }) => series.every(({ points }) => points.run.length < FEW);

/** @param {{trend: Trend, state: State}} props */
export function LimitBars({ trend, state }) {
  const bars = worstOfEach(limited(trend));
  if (!bars.length) return "";
  const [shown, rest] = [bars.slice(0, MOST_BARS), bars.slice(MOST_BARS)];
  return html`<section aria-labelledby="limits-used"><h2 id="limits-used">How much of each limit is used</h2>
    <p class="soft">The case and board that use most of it; above 100 % it is exceeded. From three runs on each series has a chart.</p>
    <${Bars} trend=${trend} state=${state} series=${shown} />
    ${rest.length > 0 && html`<details class="nearest"><summary>And ${count(rest.length, "limit")} of which less is used</summary>
      <${Bars} trend=${trend} state=${state} series=${rest} /></details>`}
  </section>`;
}

function Bars({ trend, state, series }) {
  return html`<div class="scroll"><table class="bars">
    <caption class="unseen">Shares of limits</caption>
    <thead><tr><th scope="col">Metric</th><th scope="col">Used</th><th scope="col" class="n">Now</th><th scope="col" class="n">Limit</th><th scope="col">Case</th><th scope="col">Board</th></tr></thead>
    <tbody>${series.map((one) => html`<${Bar} key=${one.id} trend=${trend} state=${state} series=${one} />`)}</tbody></table></div>`;
}

function Bar({ trend, state, series }) {
  const { value } = pointAt(series, series.now);
  const share = closeness(series);
  const tone = stands(series) === "broken" ? "bad" : share > 1 ? "unsure" : "";
  const width = Math.round(Math.min(share, MOST) * WIDTH);
  const name = `${series.quantity} ${series.stat}`.trim() + (series.blocking ? "" : " (advice)");
  return html`<tr><td><a href=${addressOf(trend, state, series)}>${name}</a></td>
    <td><svg class=${`bar ${tone}`} viewBox=${`0 0 ${WIDTH * MOST} 12`} width=${WIDTH * MOST} height="12" aria-hidden="true">
      <rect class="used" width=${width} height="12" rx="2" /><path class="full" d=${`M${WIDTH} 0v12`} /></svg> <b class=${tone || undefined}>${percent(share)}</b></td>
    <td class="n">${quantity(value ?? 0, series.unit)}</td><td class="n">${limitWords(series)}</td>
    <td>${caseWords(series)}</td><td>${boardWords(series)}</td></tr>`;
}

const percent = (/** @type {number} */ share) => (Number.isFinite(share) ? `${Math.round(share * 100)} %` : "exceeded");

const addressOf = (trend, state, series) => writeState({ ...state, chart: trend.chartOf.get(series)?.key ?? "", tab: "runs" });

/** Of each limit of a bench's metric the series that uses most of it; they come nearest first. */
function worstOfEach(/** @type {Series[]} */ series) {
  /** @type {Map<string, Series>} */
  const worst = new Map();
  for (const one of series) {
    const key = `${one.bench} ${one.metric} ${pointAt(one, one.now).limit}`;
    if (!worst.has(key)) worst.set(key, one);
  }
  return [...worst.values()];
}
