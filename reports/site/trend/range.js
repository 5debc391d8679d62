// SPDX-License-Identifier: Apache-2.0
/**
 * A range of dates: a chart of only the runs from one day to another.
 *
 * @typedef {import("./types.js").Runs} Runs
 * @typedef {import("./types.js").Series} Series
 * @typedef {import("./types.js").Chart} Chart
 * @typedef {{from: string, to: string}} Range  2026-03-04, inclusive, UTC; "" where there is no end
 */
import { rankOf } from "./model.js";

const COLUMNS = /** @type {const} */ (["run", "value", "low", "high", "reference", "boots"]);

/**
 * Where a series' points of the range begin, and how many there are.
 *
 * @param {Runs} runs
 * @param {Series} series
 * @param {Range} range
 */
export function positionsWithin(runs, { points }, { from, to }) {
  const day = (position) => runs.started_utc[points.run[position]].slice(0, 10);
  const start = firstWhere(points.run.length, (position) => day(position) >= from);
  const end = to ? firstWhere(points.run.length, (position) => day(position) > to) : points.run.length;
  return { start, count: Math.max(0, end - start) };
}

/**
 * Whether a change point of the series lies in the range.
 *
 * @param {Runs} runs
 * @param {Series} series
 * @param {Range} range
 */
export function changedWithin(runs, series, range) {
  if (!series.changes.length) return false;
  const { start, count } = positionsWithin(runs, series, range);
  return series.changes.some(({ position }) => position >= start && position < start + count);
}

/**
 * The chart with only what lies in the range; the chart itself where that is all of it.
 *
 * @param {Runs} runs
 * @param {Chart} chart
 * @param {Range} range
 * @returns {Chart}
 */
export function within(runs, chart, range) {
  if (!range.from && !range.to) return chart;
  const lines = chart.lines.map(({ stat, series }) => ({ stat, series: cut(series, positionsWithin(runs, series, range)) }))
    .filter(({ series }) => series.points.run.length);
  const rank = { ...rankOf(lines.map(({ series }) => series)), broken: chart.rank.broken };
  return { ...chart, lines, rank };
}

/** @returns {Series} */
function cut(series, { start, count }) {
  const { points } = series;
  const last = start + count - 1;
  const columns = Object.fromEntries(COLUMNS.filter((name) => points[name])
    .map((name) => [name, /** @type {any[]} */ (points[name]).slice(start, start + count)]));
  const inside = (position) => position >= start && position <= last;
  return {
    ...series,
    points: /** @type {any} */ ({
      ...columns, outcome: points.outcome.slice(start, start + count), limit: cutSteps(points.limit ?? [], start, last),
      at_least: (points.at_least ?? []).filter(inside).map((position) => position - start),
    }),
    now: series.now !== null && inside(series.now) ? series.now - start : null,
    levels: series.levels.filter(({ from, to }) => to >= start && from <= last)
      .map((level) => ({ ...level, from: Math.max(0, level.from - start), to: Math.min(last, level.to) - start })),
    changes: series.changes.filter(({ position }) => inside(position)).map((change) => ({ ...change, position: change.position - start })),
  };
}

/** Limits as steps, the one that held at the start moved there. */
function cutSteps(steps, start, last) {
  const before = steps.findLast(([from]) => from <= start);
  const later = steps.filter(([from]) => from > start && from <= last).map(([from, limit]) => [from - start, limit]);
  return before ? [[0, before[1]], ...later] : later;
}

/** The first of `count` positions that is so, given that all after it are; `count` where none is. */
function firstWhere(count, isSo) {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isSo(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
