// SPDX-License-Identifier: Apache-2.0
/**
 * From trend.json to charts: one for each quantity of a case on a board; its statistics are lines.
 *
 * Products, kinds, air profiles and units never share a chart.
 */
import { pointNow, stands } from "./points.js";
import { kindWords } from "./words.js";

/** In the order of a legend. */
export const STATISTICS = ["p50", "p90", "p95", "p99", "p99.9", "tail5", "mean", "max", ""];
const TOLD_APART = /** @type {const} */ (["product", "rack", "board", "kind", "profile", "case_id", "quantity", "unit"]);

/**
 * @param {TrendFile} json
 * @param {() => Record<string, any>} [readDetails]  called once, when a chart is first opened
 * @returns {Trend}
 */
export function readTrend(json, readDetails = () => json.details ?? {}) {
  const mixed = new Set(json.series.map((one) => kindWords(one))).size > 1;
  const series = json.series.map((one) => ({ ...one, mixed }));
  const together = Map.groupBy(series, (one) => TOLD_APART.map((name) => one[name]).join("\n"));
  const taken = new Set();
  const charts = [...together.values()].map(makeChart).sort((a, b) => Number(b.measuredNow) - Number(a.measuredNow))
    .map((chart) => ({ ...chart, key: freeKey(chart, taken) })).sort(worstFirst);
  const keys = new Map(charts.map((chart) => [chart.key, chart]));
  const chartOf = new Map(charts.flatMap((chart) => chart.lines.map((line) => [line.series, chart])));
  /** @type {Record<string, any>|undefined} */
  let details;
  return { ...json, series, charts, keys, chartOf, get details() { return (details ??= readDetails()); } };
}

/** @param {Series[]} group @returns {Chart} */
function makeChart(group) {
  const [{ product = "", rack, board, kind, simulated, mixed, profile, target, bench, case_id, label, quantity, unit }] = group;
  return {
    key: `${product ? `${product}:` : ""}${rack}/${board}/${case_id}/${quantity}`,
    product, rack, board, kind, simulated, mixed, profile, target, bench, case_id, label, quantity, unit,
    lines: group.map((series) => ({ stat: series.stat, series })).sort((a, b) => STATISTICS.indexOf(a.stat) - STATISTICS.indexOf(b.stat)),
    rank: rankOf(group), measuredNow: group.some(({ now }) => now !== null),
    text: [product, rack, board, kind, profile, target, case_id, label, quantity, ...group.map(({ metric }) => metric)].join(" ").toLowerCase(),
  };
}

/** The plain key for what was measured now; charts that would share it are told apart by kind, profile and unit. */
function freeKey({ key, kind, profile, unit }, taken) {
  const names = [key, `${key} ${[kind, profile, unit].filter(Boolean).join(" ")}`];
  const free = names.find((name) => !taken.has(name)) ?? `${names[1]} ${taken.size}`;
  taken.add(free);
  return free;
}

/** Where series stand in the reported run. @param {Series[]} group @returns {Rank} */
function rankOf(group) {
  const effects = group.flatMap(({ changes, direction }) => changes.map(({ change }) => effectOf(change, direction)));
  return {
    broken: group.some((series) => stands(series) === "broken"),
    changed: effects.includes("worse") ? "worse" : effects.includes("better") ? "better" : "",
    closeness: Math.max(...group.map(closeness)),
  };
}

/** What a relative change means, given which direction is better. */
export const effectOf = (/** @type {number} */ change, /** @type {string} */ direction) =>
  ((change > 0) === (direction === "higher") ? "better" : "worse");

/** How near the reported value is to its limit: 1 at the limit, above 1 beyond it, -1 where there is none. */
export function closeness(/** @type {Series} */ series) {
  const { value, limit } = pointNow(series);
  if (value === null || limit === null) return -1;
  const [part, whole] = series.direction === "higher" ? [limit, value] : [value, limit];
  return whole ? part / whole : part > 0 ? Infinity : 0;
}

/** Order charts: broken limits, what got worse, what got better, then what is nearest to its limit. */
export function worstFirst(/** @type {{rank: Rank}} */ { rank: a }, /** @type {{rank: Rank}} */ { rank: b }) {
  const weight = ({ broken, changed }) => (broken ? 4 : 0) + (changed === "worse" ? 2 : changed ? 1 : 0);
  return weight(b) - weight(a) || (b.closeness === a.closeness ? 0 : b.closeness - a.closeness);
}
