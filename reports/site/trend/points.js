// SPDX-License-Identifier: Apache-2.0
/** One point of a series, read from its columns. */

/** @typedef {import("./types.js").Series} Series */
/** @typedef {import("./types.js").Chart} Chart */
/** @typedef {import("./types.js").Line} Line */
/**
 * @typedef {{position: number, run: number, value: number|null, outcome: string, low: number|null,
 *            high: number|null, reference: number|null, boots: number|null, limit: number|null,
 *            atLeast: boolean}} Point  values in the series' unit; null where there is none
 */

const MOST = 1e300; // beyond this, arithmetic on the way to a pixel overflows
const MAIN_ORDER = ["p99", "p95", "p90", "p99.9", "tail5", "mean", "p50", "max", ""];

/** A number that can be drawn; null for anything else. */
export const drawable = (/** @type {unknown} */ value) => (typeof value === "number" && Math.abs(value) < MOST ? value : null);

/**
 * All points of a series, in time order.
 *
 * @param {Series} series
 * @returns {Point[]}
 */
export function pointsOf({ points }) {
  const limits = limitsOf(points);
  const atLeast = new Set(points.at_least ?? []);
  return points.run.map((run, position) => ({
    position, run, value: drawable(points.value[position]), outcome: points.outcome[position] ?? "-",
    low: drawable(points.low?.[position]), high: drawable(points.high?.[position]),
    reference: drawable(points.reference?.[position]), boots: points.boots?.[position] ?? null,
    limit: limits[position], atLeast: atLeast.has(position),
  }));
}

/** The limit at each position, from the steps in which it is stored. */
function limitsOf(/** @type {import("./types.js").Points} */ { run, limit: steps = [] }) {
  /** @type {(number|null)[]} */
  const limits = new Array(run.length).fill(null);
  steps.forEach(([from, value], index) => limits.fill(drawable(value), from, steps[index + 1]?.[0] ?? run.length));
  return limits;
}

/**
 * Whether a point lies beyond its limit: "" where not, "broken" where the gate said so of a figure that
 * blocks, else "beyond" (advice, or not provably).
 *
 * @param {Point} point
 * @param {Series} series
 */
export function excess({ value, limit, outcome }, { direction, blocking }) {
  if (value === null || limit === null) return "";
  if (direction === "higher" ? value >= limit : value <= limit) return "";
  return outcome === "r" && blocking ? "broken" : "beyond";
}

/**
 * The lines that are drawn: those of `stats`, or all where the chart has none of them.
 *
 * @param {Chart} chart
 * @param {string[]} [stats]
 */
export function linesOf(chart, stats = []) {
  const wanted = chart.lines.filter(({ stat }) => stats.includes(stat));
  return wanted.length ? wanted : chart.lines;
}

/**
 * The line that a chart is about: the one that is broken now, else the one that changed most, else the
 * highest statistic with a limit, else the highest.
 *
 * @param {Line[]} lines  at least one
 */
export function mainLine(lines) {
  const score = (/** @type {Line} */ { stat, series }) => [
    isBroken(series) ? 1 : 0,
    Math.max(0, ...series.changes.map(({ change }) => Math.abs(change) || 0)),
    (series.points.limit ?? []).some(([, limit]) => limit !== null) ? 1 : 0,
    -MAIN_ORDER.indexOf(stat),
  ];
  return lines.reduce((best, line) => (before(score(line), score(best)) ? line : best));
}

/** Whether what was measured now breaks a limit that blocks. */
export function isBroken(/** @type {Series} */ series) {
  if (series.now === null || series.now === undefined) return false;
  return excess(pointsOf(series)[series.now], series) === "broken";
}

/** Whether a chart is drawn in grey: nothing changed and nothing is broken. */
export const isQuiet = (/** @type {Line[]} */ lines) =>
  lines.every(({ series }) => !series.changes.length && !isBroken(series));

/** Whether the first list of numbers is larger at the first place where both differ. */
function before(a, b) {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at >= 0 && a[at] > b[at];
}
