// SPDX-License-Identifier: Apache-2.0
/** What a chart's lines and limits are, in words, with the values of the run that is reported. */
import { html } from "htm/preact";

import { statClass } from "./marks.js";
import { excess, isQuiet, linesOf, pointsOf } from "./points.js";
import { quantity } from "./units.js";
import { valueWords } from "./words.js";

/** @typedef {import("./types.js").Series} Series */

/**
 * What the reported run did not measure is told in grey, as it was measured last.
 *
 * @param {{trend?: import("./types.js").Trend, chart: import("./types.js").Chart, stats?: string[]}} props
 */
export function Legend({ chart, stats = [] }) {
  const lines = linesOf(chart, stats);
  return html`<ul class=${`chart-legend${isQuiet(lines) ? " quiet" : ""}`}>
    ${lines.map(({ stat, series }) => html`<li class=${statClass(stat)} key=${stat}>
      <svg class="swatch" viewBox="0 0 14 6" width="14" height="6" aria-hidden="true"><path d="M1 3h12" /></svg>
      ${stat}${stat && " "}<${Now} series=${series} past=${!chart.measuredNow} />
    </li>`)}
  </ul>`;
}

function Now({ series, past }) {
  const points = pointsOf(series);
  const point = past ? [...points].reverse().find(({ value }) => value !== null) : points[series.now ?? -1];
  if (!point || point.value === null) return html`<b>–</b>`;
  const how = excess(point, series);
  const value = valueWords(point, series.unit);
  return html`${past ? html`<span class="of">${value}</span>` : html`<b class=${how || undefined}>${value}</b>`}
    ${point.limit !== null && html` <span class="of">limit ${quantity(point.limit, series.unit)}</span>`}`;
}
