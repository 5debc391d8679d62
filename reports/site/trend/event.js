// SPDX-License-Identifier: Apache-2.0
/**
 * An opened event in pictures: one quantity on all boards, each chart on the same axis; of the surest series,
 * large, below it the ratio to the reference, which decides whose step it is.
 */
import { html } from "htm/preact";
import { line as path } from "d3-shape";

import { TrendChart } from "./chart.js";
import { caseWords, count } from "./facts.js";
import { pointsOf } from "./points.js";
import { at, fittedEnds, xAxis } from "./scale.js";
import { boardWords, signedPercent } from "./words.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").Series} Series */

const MARGINS_PX = 92; // of the page and of the opened event, on both sides together
const NARROWEST_PX = 320;
const LARGE_FROM_PX = 560; // a narrower chart is lower, too
const UNSEEN_PX = 1024; // where there is no window
const SMALL = { width: 380, height: 170 };
const RATIO_PX = 96;
const SAME = /** @type {const} */ (["product", "kind", "profile", "case_id", "metric", "unit"]);
const FEWEST = 2; // points with a reference before a ratio is drawn

/** @param {{trend: Trend, index: number, update: (changes: Partial<import("./types.js").State>) => void}} props */
export function EventCharts({ trend, index, update }) {
  const lead = surest(trend, index);
  if (!lead) return "";
  const boards = sameOnAllBoards(trend, index, lead);
  const large = largeSize();
  const ends = fittedEnds(boards);
  const open = (/** @type {Series} */ series) => () => update({ chart: trend.chartOf.get(series)?.key ?? "", tab: "runs" });
  return html`<section class="event-charts" aria-label="In pictures">
    <h3>${caseWords(lead)}: ${nameOf(lead)} <small>on ${boardWords(lead)}; dotted: the reference</small></h3>
    <${TrendChart} ...${{ trend, chart: chartOf(trend, lead), ends, event: index, ...large, onRun: open(lead) }} />
    <${Ratio} trend=${trend} series=${lead} index=${index} width=${large.width} />
    ${boards.length > 1 && html`<h3>The same on all boards <small>one axis; coloured where it changed</small></h3>
      <div class="boards-charts">${boards.map((series) => html`<figure class="board-tile" key=${series.id}>
        <figcaption><button type="button" class="plain" onClick=${open(series)}>${series.rack}/${boardWords(series)}</button>
          <small>${stepOf(series, index)}</small></figcaption>
        <${TrendChart} ...${{ trend, chart: chartOf(trend, series), ends, event: index, ...SMALL, onRun: open(series) }} />
      </figure>`)}</div>`}
  </section>`;
}

/** As many pixels as the window has room for, so that letters are as large as elsewhere. */
function largeSize() {
  const width = Math.max(NARROWEST_PX, Math.round((globalThis.innerWidth ?? UNSEEN_PX) - MARGINS_PX));
  return { width, height: width < LARGE_FROM_PX ? 200 : 300 };
}

/** The series that shows an event best. */
export function surest({ events, series }, index) {
  const event = events[index];
  return series[event.picture?.series ?? event.series[0]];
}

/**
 * The series of the same metric and case on every board: those that changed first, in the event's order.
 *
 * @param {Trend} trend
 * @param {number} index
 * @param {Series} lead
 */
export function sameOnAllBoards(trend, index, lead) {
  const order = new Map(trend.events[index].series.map((number, place) => [trend.series[number], place]));
  const place = (/** @type {Series} */ series) => (series === lead ? -1 : order.get(series) ?? Infinity);
  return trend.series.filter((series) => SAME.every((name) => series[name] === lead[name]))
    .sort((a, b) => (place(a) === place(b) ? 0 : place(a) - place(b)) || `${a.rack}/${a.board}`.localeCompare(`${b.rack}/${b.board}`));
}

const nameOf = (/** @type {Series} */ { quantity, stat }) => `${quantity} ${stat}`.trim();

/** One line as a chart; what is not of the event is quiet. */
function chartOf(trend, series) {
  const whole = trend.chartOf.get(series);
  return { ...whole, lines: [{ stat: series.stat, series }] };
}

function stepOf({ changes }, index) {
  const change = changes.find(({ event }) => event === index);
  return change ? signedPercent(change.change) : "as before";
}

/**
 * The candidate over the reference in per cent of its mean before the step, with the mean on both sides.
 *
 * @param {{trend: Trend, series: Series, index: number, width: number}} props  width in pixels, as of the chart above
 */
export function Ratio({ trend, series, index, width }) {
  const step = series.changes.find(({ event }) => event === index)?.position ?? -1;
  const ratios = step < 0 ? [] : ratiosOf(series, step);
  if (ratios.length < FEWEST) return "";
  const box = { left: 52, right: width - 14, top: 22, bottom: RATIO_PX - 6 };
  const { x } = xAxis(trend, series.points.run, box);
  const values = ratios.map(({ ratio }) => ratio);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const air = Math.max((high - low) * 0.1, 0.005);
  const y = (/** @type {number} */ ratio) => at(box.bottom - ((ratio - low + air) / (high - low + 2 * air)) * (box.bottom - box.top));
  const draw = path().digits(1).x(({ run }) => x(run)).y(({ ratio }) => y(ratio));
  const sides = [ratios.filter(({ position }) => position < step), ratios.filter(({ position }) => position >= step)];
  const words = trend.events[index].of_ratio ? "Beside the reference: this decides" : "Beside the reference";
  return html`<svg class="trend-chart ratio" viewBox=${`0 0 ${width} ${RATIO_PX}`} role="img">
    <title>${`${words}. ${nameOf(series)} over that of the reference, ${count(ratios.length, "night")}`}</title>
    <text x=${box.left} y="12">${words}</text>
    ${[low, high].map((ratio) => html`<path class="grid" d=${`M${box.left} ${y(ratio)}H${box.right}`} />
      <text class="e u" x=${box.left - 6} y=${at(y(ratio) + 3.5)}>${signedPercent(ratio)}</text>`)}
    <g class="stat-p95"><path class="line" d=${draw(ratios)} />
      ${sides.filter((side) => side.length).map((side) => html`<path class="level" d=${`M${x(side[0].run)} ${y(mean(side))}H${x(side[side.length - 1].run)}`} />`)}</g>
  </svg>`;
}

const mean = (/** @type {{ratio: number}[]} */ side) => side.reduce((sum, { ratio }) => sum + ratio, 0) / side.length;

function ratiosOf(series, step) {
  const found = pointsOf(series).flatMap(({ position, run, value, reference }) => (value && reference ? [{ position, run, ratio: value / reference }] : []));
  const before = found.filter(({ position }) => position < step);
  if (!before.length) return [];
  const base = mean(before);
  return found.map((one) => ({ ...one, ratio: one.ratio / base - 1 }));
}
