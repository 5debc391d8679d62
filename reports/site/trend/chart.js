// SPDX-License-Identifier: Apache-2.0
/** The chart of a metric over the runs, and its legend with the values of the reported run. */
import { html } from "htm/preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";

import { columnsOf, drawingOf, endsOf } from "./drawing.js";
import { marksOf } from "./marks.js";
import { axis, colour, faint, Plot } from "./plot.js";
import { excess, linesOf, pointsOf } from "./points.js";
import { digits, quantity } from "./units.js";
import { describe, runName, runWords, valueWords } from "./words.js";

const MONTH_S = 28 * 86_400;

/** The name of the colour of a statistic, also the end of its class. */
const statColour = (/** @type {string} */ stat) => (/^[\w.]+$/.test(stat) ? `chart-${stat.replace(".", "_")}` : "chart-one");

/**
 * @param {{trend: Trend, chart: Chart, stats?: string[], within?: (run: number) => boolean, height?: number,
 *   ends?: number[], event?: number, zoom?: boolean, onRun?: (run: number) => void, onEvent?: (event: number) => void}} props
 *   stats: the statistics to draw, else all; ends: of y in the unit of the series, else from zero; event: the one whose step
 *   is shaded; zoom: dragging over runs enlarges them, a double click shows all again
 */
export function TrendChart({ trend, chart, stats = [], within, height = 190, ends, event, zoom = false, onRun, onEvent }) {
  const { drawing, data, options } = useMemo(() => {
    const drawing = drawingOf(trend, chart, stats, within);
    return { drawing, data: columnsOf(drawing), options: optionsOf(trend, drawing, { ends, event, zoom, onEvent }) };
  }, [chart, stats.join(), within, ends?.join(), event, zoom]);
  const { runs, lines, quiet } = drawing;
  return html`<${Plot} name=${describe(trend, chart, drawing)} class=${quiet ? "quiet" : ""} data=${data} options=${options} height=${height}
    tip=${(index) => runWords(trend, lines, runs[index])} onChoose=${onRun && ((index) => onRun(runs[index]))} />`;
}

function optionsOf(trend, drawing, { ends, event, zoom, onEvent }) {
  const { lines, main, unit, byDate, runs, quiet } = drawing;
  let plot;
  const grey = () => quiet && !plot?.root.parentElement?.matches(":hover, :focus");
  const ink = (stat) => (grey() ? (stat === main.stat ? "chart-quiet-main" : "chart-quiet") : statColour(stat));
  const series = lines.map((line) => ({
    stroke: () => colour(ink(line.stat)), width: line === main ? 1.8 : 1.3, points: { size: 5, fill: () => colour(ink(line.stat)) },
  }));
  const unseen = { stroke: "transparent", points: { show: false } };
  const reference = { stroke: () => colour("soft"), width: 1, dash: [1, 3], points: { show: false } };
  const [low, high] = ends?.map((end) => end * unit.factor) ?? endsOf(drawing);
  const marks = marksOf(trend, drawing, { event, ink, onEvent });
  const last = lines.length;
  const across = (_, places, __, ___, step) => places.map((place) => labelOf(trend, drawing, place, step));
  const up = (_, places) => places.map((place, n) => (n < places.length - 1 ? digits(place) : `${digits(place)} ${unit.symbol}`));
  return {
    series: [{}, ...series, reference, unseen, unseen],
    bands: [{ series: [last + 3, last + 2], fill: () => faint(colour(ink(main.stat))) }],
    scales: { x: { time: byDate, ...(runs.length === 1 && { range: [-1, 1] }) }, y: { range: () => [low, high] } },
    axes: [axis({ values: across, space: 66, size: 26, grid: { show: false } }), axis({ values: up, space: 34, size: 52 })],
    padding: [20, lines.length > 1 ? 38 : 14, 0, 0], cursor: zoom ? { drag: { x: true, y: false, setScale: true } } : {},
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"), hooks: { ...marks, init: [(u) => { plot = u; }] },
  };
}

/** A day or a month where runs stand at their dates, else the commit of the run. */
function labelOf(trend, { byDate, runs }, place, step) {
  if (byDate) return new Date(place * 1000).toISOString().slice(...(step >= MONTH_S ? [0, 7] : [5, 10]));
  return Number.isInteger(place) && runs[place] !== undefined ? runName(trend, runs[place]) : null;
}

/** What a chart's lines and limits are. What the reported run did not measure is told in grey, as it was measured last. */
export function Legend({ chart, stats = [] }) {
  return html`<ul class="chart-legend">${linesOf(chart, stats).map(({ stat, series }) => html`<li key=${stat}>
    <i class=${`swatch ${statColour(stat)}`}></i>${stat}${stat && " "}<${Now} series=${series} past=${!chart.measuredNow} /></li>`)}</ul>`;
}

function Now({ series, past }) {
  const points = pointsOf(series);
  const point = past ? points.findLast(({ value }) => value !== null) : points[series.now ?? -1];
  if (!point || point.value === null) return html`<b>–</b>`;
  const value = valueWords(point, series.unit);
  return html`${past ? html`<span class="of">${value}</span>` : html`<b class=${excess(point, series) || undefined}>${value}</b>`}
    ${point.limit !== null && html` <span class="of">limit ${quantity(point.limit, series.unit)}</span>`}`;
}
