// SPDX-License-Identifier: Apache-2.0
/** A chart as numbers: its lines as columns over the runs, in one unit, and the ends of its axes. */
import uPlot from "uplot";

import { linesOf, mainLine, pointsOf, stands } from "./points.js";
import { shownUnit } from "./units.js";
import { changesOf } from "./words.js";

const SPAN_BY_DATE_MS = 14 * 86_400_000;
const LIMIT_REACH = 3; // a limit further up than this many times the values would flatten them
const AIR = 0.08; // of the range of the values, above and below them

/**
 * @param {Trend} trend
 * @param {Chart} chart
 * @param {string[]} [stats]  the statistics to draw, else all
 * @param {(run: number) => boolean} [within]  which runs
 * @returns {Drawing}
 */
export function drawingOf(trend, chart, stats, within = () => true) {
  const lines = linesOf(chart, stats).map((line) => ({ ...line, points: pointsOf(line.series).filter(({ run }) => within(run)) }));
  const runs = [...new Set(lines.flatMap(({ points }) => points.map(({ run }) => run)))].sort((a, b) => a - b);
  const main = mainLine(lines);
  const time = (/** @type {number} */ run) => Date.parse(trend.runs.started_utc[run]) / 1000;
  const byDate = runs.length > 1 && (time(runs[runs.length - 1]) - time(runs[0])) * 1000 > SPAN_BY_DATE_MS;
  const order = new Map(runs.map((run, index) => [run, index]));
  const most = Math.max(0, ...lines.flatMap(({ points }) => points.map(({ value }) => Math.abs(value ?? 0))));
  return {
    runs, lines, main, byDate, unit: shownUnit(chart.unit, most), x: (run) => (byDate ? time(run) : order.get(run) ?? 0),
    quiet: lines.every(({ series }) => !series.changes.length && stands(series) !== "broken"),
    changes: changesOf(lines).filter(({ run }) => order.has(run)),
  };
}

/** Columns for uPlot: x, each line, then reference, low and high of the main line; no point is undefined, no value null. */
export function columnsOf(/** @type {Drawing} */ { runs, lines, main, unit, x }) {
  const column = (/** @type {Point[]} */ points, /** @type {"value"|"reference"|"low"|"high"} */ name) => {
    const byRun = new Map(points.map((point) => [point.run, point]));
    return runs.map((run) => byRun.has(run) ? scaled(byRun.get(run)?.[name] ?? null, unit.factor) : undefined);
  };
  const beside = /** @type {const} */ (["reference", "low", "high"]).map((name) => column(main.points, name));
  return [runs.map(x), ...lines.map(({ points }) => column(points, "value")), ...beside];
}

const scaled = (/** @type {number|null} */ value, /** @type {number} */ factor) => (value === null ? null : value * factor);

/** The ends of y from zero, with the limits that are not far above the values; in the shown unit. */
export function endsOf(/** @type {Drawing} */ { lines, main, unit }) {
  const drawn = lines.flatMap(({ points }) => points);
  const values = [...drawn.map(({ value }) => value), ...main.points.flatMap(({ high, reference }) => [high, reference])]
    .filter((value) => value !== null);
  const most = Math.max(0, ...values);
  const limits = drawn.map(({ limit }) => limit).filter((limit) => limit !== null && (!most || limit <= most * LIMIT_REACH));
  const all = [0, ...values, ...limits].map((value) => Number(value) * unit.factor);
  const pad = { pad: AIR, soft: 0, mode: /** @type {3} */ (3) };
  return uPlot.rangeNum(Math.min(...all), Math.max(...all) || 1, { min: { ...pad }, max: { pad: AIR } });
}

/** The ends of an axis, in the unit of the series, that holds what was measured and little else; limits may lie off it. */
export function fittedEnds(/** @type {Series[]} */ series) {
  const values = series.flatMap((one) => pointsOf(one).flatMap(({ value, reference }) => [value, reference])).filter((value) => value !== null);
  if (!values.length) return undefined;
  const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  const air = Math.max((high - low) * AIR, Math.abs(high) * AIR / 10, 1e-12);
  return [low - air, high + air];
}
