// SPDX-License-Identifier: Apache-2.0
/**
 * An opened event in pictures: the surest series, large; below it the ratio to the reference, which decides whose step it
 * is; then the same metric on all boards, each chart on the same axis.
 */
import { html } from "htm/preact";
import { useMemo } from "preact/hooks";

import { TrendChart } from "./chart.js";
import { drawingOf, fittedEnds } from "./drawing.js";
import { level } from "./marks.js";
import { axis, colour, Plot } from "./plot.js";
import { pointsOf } from "./points.js";
import { boardWords, caseWords, metricWords, signedPercent } from "./words.js";

const LARGE_PX = 280;
const RATIO_PX = 96;
const SAME = /** @type {const} */ (["product", "kind", "profile", "case_id", "metric", "unit"]);
const FEWEST = 2; // points with a reference before a ratio is drawn

/** @param {{trend: Trend, index: number, update: Update}} props */
export function EventCharts({ trend, index, update }) {
  const { picture, series } = trend.events[index];
  const lead = trend.series[picture?.series ?? series[0]];
  const boards = useMemo(() => (lead ? sameOnAllBoards(trend, index, lead) : []), [trend, index]);
  const ends = useMemo(() => fittedEnds(boards.map(({ series: one }) => one)), [boards]);
  if (!lead) return "";
  const open = (/** @type {Series} */ one) => () => update({ chart: trend.chartOf.get(one)?.key });
  const shared = { trend, ends, event: index };
  return html`<section class="event-charts" aria-label="In pictures">
    <h3>${caseWords(lead)}: ${metricWords(lead)} <small>on ${boardWords(lead)}; dotted: the reference</small></h3>
    <${TrendChart} ...${{ ...shared, chart: boards[0].chart, height: LARGE_PX, onRun: open(lead) }} />
    <${Ratio} trend=${trend} chart=${boards[0].chart} index=${index} />
    ${boards.length > 1 && html`<h3>The same on all boards <small>one axis; coloured where it changed</small></h3>
      <div class="boards-charts">${boards.map(({ chart, series: one }) => html`<figure class="board-tile" key=${one.id}>
        <figcaption><button type="button" class="plain" onClick=${open(one)}>${one.rack}/${boardWords(one)}</button>
          <small>${stepOf(one, index)}</small></figcaption>
        <${TrendChart} ...${{ ...shared, chart, onRun: open(one) }} />
      </figure>`)}</div>`}
  </section>`;
}

/** The same metric and case on every board, each as a chart of one line: the surest, then those that changed first. */
function sameOnAllBoards(/** @type {Trend} */ trend, /** @type {number} */ index, /** @type {Series} */ lead) {
  const order = new Map(trend.events[index].series.map((number, place) => [trend.series[number], place]));
  const place = (/** @type {Series} */ series) => (series === lead ? -1 : order.get(series) ?? trend.series.length);
  return trend.series.filter((series) => SAME.every((name) => series[name] === lead[name]))
    .sort((a, b) => place(a) - place(b) || `${a.rack}/${a.board}`.localeCompare(`${b.rack}/${b.board}`))
    .map((series) => ({ series, chart: { ...trend.chartOf.get(series), lines: [{ stat: series.stat, series }] } }));
}

const stepOf = ({ changes }, index) => {
  const change = changes.find(({ event }) => event === index);
  return change ? signedPercent(change.change) : "as before";
};

/** The candidate over the reference in per cent of its mean before the step, with the mean on both sides. */
function Ratio({ trend, chart, index }) {
  const made = useMemo(() => {
    const [{ series }] = chart.lines;
    const ratios = ratiosOf(series, series.changes.find(({ event }) => event === index)?.position ?? -1);
    return ratios.length < FEWEST ? null : { ratios, ...ratioPlot(drawingOf(trend, chart), ratios) };
  }, [chart, index]);
  if (!made) return "";
  const words = trend.events[index].of_ratio ? "Beside the reference: this decides" : "Beside the reference";
  return html`<h4>${words}</h4><${Plot} name=${`${words}: ${metricWords(chart.lines[0].series)} over that of the reference`} height=${RATIO_PX}
    data=${made.data} options=${made.options} />`;
}

function ratioPlot({ runs, x }, ratios) {
  const byRun = new Map(ratios.map(({ run, ratio }) => [run, ratio]));
  const sides = [false, true].map((after) => ratios.filter((one) => one.after === after)).filter((side) => side.length);
  const ink = { stroke: () => colour("chart-p95"), width: 1.3, points: { show: false } };
  const ends = (/** @type {any[]} */ side) => ({ from: x(side[0].run), to: x(side[side.length - 1].run), value: mean(side) });
  return {
    data: [runs.map(x), runs.map((run) => byRun.get(run))],
    options: {
      series: [{}, ink], scales: { x: { time: false } }, padding: [8, 14, 6, 0],
      axes: [axis({ show: false }), axis({ values: (_, places) => places.map(signedPercent), space: 24, size: 52 })],
      hooks: { draw: [(u) => sides.forEach((side) => level(u, ends(side), "chart-p95"))] },
    },
  };
}

const mean = (/** @type {{ratio: number}[]} */ side) => side.reduce((sum, { ratio }) => sum + ratio, 0) / side.length;

function ratiosOf(series, step) {
  const found = pointsOf(series).flatMap(({ position, run, value, reference }) =>
    (value && reference ? [{ run, after: position >= step, ratio: value / reference }] : []));
  const before = found.filter(({ after }) => !after);
  return step < 0 || !before.length ? [] : found.map((one) => ({ ...one, ratio: one.ratio / mean(before) - 1 }));
}
