// SPDX-License-Identifier: Apache-2.0
/**
 * Which charts the state asks for, in groups: bench and board, the worst first.
 *
 * @typedef {import("./types.js").Trend} Trend
 * @typedef {import("./types.js").Chart} Chart
 * @typedef {import("./types.js").State} State
 * @typedef {{case_id: string, label: string, charts: Chart[]}} Case
 * @typedef {{key: string, product: string, bench: string, rack: string, board: string, kind: string, simulated: string, mixed?: boolean,
 *   profile: string,
 *            measuredNow: boolean, cases: Case[], charts: number, rank: import("./types.js").Rank}} Group
 */
import { worstFirst } from "./model.js";
import { changedWithin, positionsWithin } from "./range.js";
import { EMPTY, writeState } from "./state.js";

const CHOICES = /** @type {const} */ (["product", "board", "rack", "kind", "target", "bench"]);

/**
 * The charts that match, in the order of trend.charts.
 *
 * @param {Trend} trend
 * @param {State} state
 * @returns {Chart[]}
 */
export function selectCharts(trend, state) {
  const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
  const event = state.event === null ? undefined : trend.events[state.event];
  const wanted = event && new Set(event.series.map((index) => trend.series[index]));
  const ranged = Boolean(state.from || state.to);
  return trend.charts.filter((chart) => CHOICES.every((name) => !state[name] || chart[name] === state[name])
    && (!state.stat.length || chart.lines.some(({ stat }) => state.stat.includes(stat)))
    && (!state.broken || chart.rank.broken)
    && (!wanted || chart.lines.some(({ series }) => wanted.has(series)))
    && words.every((word) => chart.text.includes(word))
    && (!ranged || chart.lines.some(({ series }) => positionsWithin(trend.runs, series, state).count))
    && (!state.changed || chart.lines.some(({ series }) => changedWithin(trend.runs, series, state))));
}

/**
 * @param {Chart[]} charts
 * @returns {Group[]}
 */
export function groupCharts(charts) {
  /** @type {Map<string, Group & {byCase: Map<string, Case>}>} */
  const groups = new Map();
  for (const chart of charts) {
    const { product, rack, board, kind, simulated, mixed, profile, bench, case_id, label, measuredNow, rank } = chart;
    const key = [bench, product, rack, board, kind, profile, measuredNow ? "" : "past"].filter(Boolean).join("/");
    let group = groups.get(key);
    if (!group) { // charts come worst first, so a group's first one is its worst
      group = { key, product, bench, rack, board, kind, simulated, mixed, profile, measuredNow, cases: [], charts: 0, rank, byCase: new Map() };
      groups.set(key, group);
    }
    let item = group.byCase.get(case_id);
    if (!item) {
      item = { case_id, label, charts: [] };
      group.byCase.set(case_id, item);
      group.cases.push(item);
    }
    item.charts.push(chart);
    group.charts += 1;
  }
  return [...groups.values()].sort((a, b) => Number(b.measuredNow) - Number(a.measuredNow) || worstFirst(a, b));
}

/**
 * What can be chosen from: the values of all charts, sorted.
 *
 * @param {Trend} trend
 * @returns {Record<"product"|"board"|"rack"|"kind"|"target"|"bench", string[]>}
 */
export function choicesOf(trend) {
  const sorted = (name) => [...new Set(trend.charts.map((chart) => chart[name]))].filter(Boolean)
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  return /** @type {any} */ (Object.fromEntries(CHOICES.map((name) => [name, sorted(name)])));
}

const TEST = /^#test=([0-9a-f]{32})$/;

/**
 * The address of the chart that belongs to a test of the test report, whose page links here by its id; "" where
 * the hash names none that was measured.
 *
 * @param {Trend} trend
 * @param {string} hash
 */
export function addressOfTest(trend, hash) {
  const id = TEST.exec(hash)?.[1];
  const own = id ? trend.series.filter(({ test }) => test === id) : [];
  const series = own.find(({ stat }) => stat === "p95") ?? own[0];
  const chart = series && trend.chartOf.get(series);
  return chart ? writeState({ ...EMPTY, chart: chart.key }) : "";
}
