// SPDX-License-Identifier: Apache-2.0
/** The points of a series, read from its columns, and how each stands to its limit. */

const MOST = 1e300; // beyond this, arithmetic on the way to a pixel overflows
const MAIN_ORDER = ["p99", "p95", "p90", "p99.9", "tail5", "mean", "p50", "max", ""];

/** A number that can be drawn; null for anything else. */
export const drawable = (/** @type {unknown} */ value) => (typeof value === "number" && Math.abs(value) < MOST ? value : null);

/** All points of a series, in time order. @returns {Point[]} */
export function pointsOf(/** @type {Series} */ { points }) {
  const atLeast = new Set(points.at_least ?? []);
  const limits = new Array(points.run.length).fill(null);
  (points.limit ?? []).forEach(([from, value], index, steps) => limits.fill(drawable(value), from, steps[index + 1]?.[0]));
  return points.run.map((run, position) => ({
    position, run, value: drawable(points.value[position]), outcome: points.outcome[position] ?? "-",
    low: drawable(points.low?.[position]), high: drawable(points.high?.[position]),
    reference: drawable(points.reference?.[position]), limit: limits[position], atLeast: atLeast.has(position),
  }));
}

/** Value, limit and outcome of the reported run; null where there is none. */
export function pointNow(/** @type {Series} */ { points, now }) {
  if (now === null || now === undefined) return { value: null, limit: null, outcome: "-" };
  const step = (points.limit ?? []).findLast(([from]) => from <= now);
  return { value: drawable(points.value[now]), limit: step?.[1] ?? null, outcome: points.outcome[now] ?? "-" };
}

/**
 * How a point exceeds its limit: "" where it does not, "broken" where the gate said so of a blocking metric, else "beyond".
 *
 * @param {Pick<Point, "value"|"limit"|"outcome">} point
 * @param {Pick<Series, "direction"|"blocking">} series
 */
export function excess({ value, limit, outcome }, { direction, blocking }) {
  if (value === null || limit === null || (direction === "higher" ? value >= limit : value <= limit)) return "";
  return outcome === "r" && blocking ? "broken" : "beyond";
}

/** How the reported run stands to its limit. */
export const stands = (/** @type {Series} */ series) => excess(pointNow(series), series);

/** The lines of the wanted statistics, or all where the chart has none of them. @param {Chart} chart @param {string[]} stats */
export function linesOf(chart, stats = []) {
  const wanted = chart.lines.filter(({ stat }) => stats.includes(stat));
  return wanted.length ? wanted : chart.lines;
}

/**
 * The line that a chart is about: the one that is broken now, else the one that changed most, else the highest statistic
 * with a limit, else the highest.
 *
 * @template {Line} T
 * @param {T[]} lines  at least one
 */
export function mainLine(lines) {
  const score = (/** @type {T} */ { stat, series }) => [
    Number(stands(series) === "broken"), Math.max(0, ...series.changes.map(({ change }) => Math.abs(change) || 0)),
    Number((series.points.limit ?? []).some(([, limit]) => limit !== null)), -MAIN_ORDER.indexOf(stat),
  ];
  const differ = (a, b) => a.map((value, index) => value - b[index]).find((difference) => difference) ?? 0;
  return lines.reduce((best, line) => (differ(score(line), score(best)) > 0 ? line : best));
}
