// SPDX-License-Identifier: Apache-2.0
/** Which charts the state asks for, in groups of bench and board, the worst first. */
import { worstFirst } from "./model.js";
import { EMPTY, writeState } from "./state.js";

const CHOICES = /** @type {const} */ (["product", "board", "rack", "kind", "target", "bench"]);
const TEST = /^#test=([0-9a-f]{32})$/;

/** Whether a run lies between the days of the state, both included. */
export const isWithin = (/** @type {Trend} */ { runs }, /** @type {Pick<State, "from"|"to">} */ { from, to }) => (/** @type {number} */ run) => {
  const day = runs.started_utc[run].slice(0, 10);
  return day >= from && (!to || day <= to);
};

/** The charts that match, in the order of trend.charts. @param {Trend} trend @param {State} state */
export function selectCharts(trend, state) {
  const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = state.event === null ? undefined : new Set(trend.events[state.event].series.map((index) => trend.series[index]));
  const within = isWithin(trend, state);
  const ranged = Boolean(state.from || state.to);
  return trend.charts.filter((chart) => CHOICES.every((name) => !state[name] || chart[name] === state[name])
    && (!state.broken || chart.rank.broken)
    && words.every((word) => chart.text.includes(word))
    && (!state.stat.length || chart.lines.some(({ stat }) => state.stat.includes(stat)))
    && (!wanted || chart.lines.some(({ series }) => wanted.has(series)))
    && (!ranged || chart.lines.some(({ series }) => series.points.run.some(within)))
    && (!state.changed || chart.lines.some(({ series: { changes, points } }) => changes.some(({ position }) => within(points.run[position])))));
}

/** Charts come worst first, so the first one of a group is its worst. @param {Chart[]} charts @returns {Group[]} */
export function groupCharts(charts) {
  const groups = Map.groupBy(charts, ({ bench, product, rack, board, kind, profile, measuredNow }) =>
    [bench, product, rack, board, kind, profile, measuredNow ? "" : "past"].filter(Boolean).join("/"));
  return [...groups].map(([key, own]) => ({ ...own[0], key, charts: own, cases: [...Map.groupBy(own, ({ case_id }) => case_id).values()] }))
    .sort((a, b) => Number(b.measuredNow) - Number(a.measuredNow) || worstFirst(a, b));
}

/** The values of all charts for each filter, sorted. @returns {Record<string, string[]>} */
export function choicesOf(/** @type {Trend} */ { charts }) {
  const sorted = (name) => [...new Set(charts.map((chart) => chart[name]))].filter(Boolean)
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  return Object.fromEntries(CHOICES.map((name) => [name, sorted(name)]));
}

/** The address of the chart of a test whose id the test report linked with; "" where none was measured. */
export function addressOfTest(/** @type {Trend} */ trend, /** @type {string} */ hash) {
  const id = TEST.exec(hash)?.[1];
  const own = id ? trend.series.filter(({ test }) => test === id) : [];
  const chart = trend.chartOf.get(own.find(({ stat }) => stat === "p95") ?? own[0]);
  return chart ? writeState({ ...EMPTY, chart: chart.key }) : "";
}
