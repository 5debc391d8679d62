// SPDX-License-Identifier: Apache-2.0
/**
 * From trend.json to charts: one a quantity of a case on a board; its statistics are lines.
 *
 * Products never meet, and kinds neither: a physical and a virtual board of one name have charts of their own. Neither do air
 * profiles.
 *
 * @typedef {import("./types.js").Trend} Trend
 * @typedef {import("./types.js").Series} Series
 * @typedef {import("./types.js").Chart} Chart
 * @typedef {import("./types.js").Rank} Rank
 */
import { excess } from "./points.js";
import { kindWords } from "./words.js";

/** In the order of a legend. */
export const STATISTICS = ["p50", "p90", "p95", "p99", "p99.9", "tail5", "mean", "max", ""];
const UNLIMITED = -1;
const TOLD_APART = /** @type {const} */ (["product", "rack", "board", "kind", "profile", "case_id", "quantity", "unit"]);

/**
 * @param {import("./types.js").TrendFile & {details?: Record<string, any>}} json
 * @param {() => Record<string, any>} [readDetails]  called once, when a drill-down first asks; else
 *   json.details
 * @returns {Trend}
 */
export function readTrend(json, readDetails = () => json.details ?? {}) {
  const mixed = new Set(json.series.map((one) => kindWords(one))).size > 1;
  const series = json.series.map((one) => ({ ...one, mixed }));
  const charts = chartsOf(series).sort(worstFirst);
  const keys = new Map(charts.map((chart) => [chart.key, chart]));
  const chartOf = new Map(charts.flatMap((chart) => chart.lines.map(({ series }) => [series, chart])));
  /** @type {Record<string, any>|undefined} */
  let details;
  return { ...json, series, charts, keys, chartOf, get details() { return (details ??= readDetails()); } };
}

/**
 * @param {Trend} trend
 * @param {string} key
 * @returns {Chart|undefined}
 */
export function byKey(trend, key) {
  return trend.keys.get(key);
}

/** @param {Series[]} series */
function chartsOf(series) {
  /** @type {Map<string, Series[]>} */
  const together = new Map();
  for (const item of series) {
    const place = TOLD_APART.map((name) => item[name]).join("\n");
    const found = together.get(place);
    if (found) found.push(item);
    else together.set(place, [item]);
  }
  const taken = new Set();
  const charts = [...together.values()].map(makeChart).sort((a, b) => Number(b.measuredNow) - Number(a.measuredNow));
  return charts.map((chart) => ({ ...chart, key: freeKey(chart, taken) }));
}

/** @param {Series[]} group */
function makeChart(group) {
  const [{ product = "", rack, board, kind, simulated, mixed, profile, target, bench, case_id, label, quantity, unit }] = group;
  const place = product ? `${product}:${rack}` : rack;
  const lines = group.map((series) => ({ stat: series.stat, series }))
    .sort((a, b) => STATISTICS.indexOf(a.stat) - STATISTICS.indexOf(b.stat));
  return {
    key: `${place}/${board}/${case_id}/${quantity}`, product, rack, board, kind, simulated, mixed, profile, target, bench, case_id, label,
    quantity, unit, lines, events: eventsOf(group), rank: rankOf(group), measuredNow: group.some(({ now }) => now !== null),
    text: [product, rack, board, kind, profile, target, case_id, label, quantity, ...group.map(({ metric }) => metric)].join(" ").toLowerCase(),
  };
}

/** The plain key for what was measured now; what would share it is told apart by kind, profile and unit. */
function freeKey({ key, kind, profile, unit }, taken) {
  const names = [key, `${key} ${[kind, profile, unit].filter(Boolean).join(" ")}`];
  const free = names.find((name) => !taken.has(name)) ?? `${names[1]} ${taken.size}`;
  taken.add(free);
  return free;
}

const eventsOf = (group) => [...new Set(group.flatMap(({ changes }) => changes.map(({ event }) => event)))].sort((a, b) => a - b);

/**
 * Where series stand now: a limit that is broken counts only as long as the reported run breaks it.
 *
 * @param {Series[]} group
 * @returns {Rank}
 */
export function rankOf(group) {
  return {
    broken: group.some((series) => stands(series) === "broken"),
    changed: changedOf(group),
    closeness: group.reduce((most, series) => Math.max(most, closeness(series)), UNLIMITED),
  };
}

/**
 * How the reported value stands against its limit: "", "broken" or "beyond" (see excess).
 *
 * @param {Series} series
 */
export function stands(series) {
  const { value, limit } = pointAt(series, series.now);
  const outcome = series.points.outcome[series.now ?? -1] ?? "-";
  return excess(/** @type {import("./points.js").Point} */ ({ value, limit, outcome }), series);
}

/** "worse" where any change made it worse, else "better" where there was one. */
function changedOf(group) {
  const effects = group.flatMap((series) => series.changes.map(({ change }) => effectOf(change, series.direction)));
  return effects.includes("worse") ? "worse" : effects.includes("better") ? "better" : "";
}

/**
 * What a relative change means to who uses it.
 *
 * @param {number} change
 * @param {string} direction  which is better: "lower" or "higher"
 */
export const effectOf = (change, direction) => ((change > 0) === (direction === "higher") ? "better" : "worse");

/**
 * How near the reported value is to its limit: 1 at the limit, above 1 beyond it, -1 where there is none.
 *
 * @param {Series} series
 */
export function closeness(series) {
  const { value, limit } = pointAt(series, series.now);
  if (value === null || limit === null) return UNLIMITED;
  const [part, whole] = series.direction === "higher" ? [limit, value] : [value, limit];
  return whole ? part / whole : part > 0 ? Infinity : 0;
}

/**
 * Value and limit of one point; null where there is none.
 *
 * @param {Series} series
 * @param {number|null} position
 */
export function pointAt({ points }, position) {
  if (position === null) return { value: null, limit: null };
  const step = (points.limit ?? []).findLast(([from]) => from <= position);
  return { value: points.value[position] ?? null, limit: step?.[1] ?? null };
}

/**
 * The order of charts: broken limits, what got worse, what got better, then what is nearest to its limit.
 *
 * @param {{rank: Rank}} a
 * @param {{rank: Rank}} b
 */
export function worstFirst({ rank: a }, { rank: b }) {
  const weight = ({ broken, changed }) => (broken ? 4 : 0) + (changed === "worse" ? 2 : changed ? 1 : 0);
  return weight(b) - weight(a) || (b.closeness === a.closeness ? 0 : b.closeness - a.closeness);
}
