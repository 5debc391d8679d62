// SPDX-License-Identifier: Apache-2.0
/**
 * What trend.json holds (docs/reference/schema/trend.schema.json) and what the page makes of it.
 *
 * Columns over the runs, in time order:
 * @typedef {{product?: string[], id: string[], started_utc: string[], commit: string[], dirty: number[], rack: string[],
 *   trigger: string[], suite: string[], profile: string[], url: string[], reported: number[]}} Runs
 *
 * Columns over the runs of one series, oldest first; limits are steps:
 * @typedef {{run: number[], value: (number|null)[], outcome: string, low?: (number|null)[],
 *   high?: (number|null)[], reference?: (number|null)[], boots?: number[],
 *   limit?: [number, number|null][], at_least?: number[]}} Points
 *
 * From one position to another, both inclusive:
 * @typedef {{from: number, to: number, value: number, low: number|null, high: number|null}} Level
 *
 * A relative change, 0.1 is +10 %:
 * @typedef {{event: number, position: number, change: number, low: number|null, high: number|null,
 *   of_ratio: boolean, before: number|null, after: number|null}} Change
 *
 * @typedef {{id: string, product?: string, rack: string, board: string, kind: string, simulated: string, target: string,
 *   bench: string, case_id: string, label: string, metric: string, quantity: string, stat: string,
 *   mixed?: boolean, unit: string, direction: string, blocking: boolean, profile: string, points: Points,
 *   now: number|null, levels: Level[], changes: Change[], test: string}} Series
 *
 * @typedef {{cause: string, effect: string, products?: string[], racks: string[], boards: string[], night: string,
 *   nights: number, state?: string, ended?: string, open_nights?: number,
 *   commit?: {title: string, author: string, count: number, diff: string}, picture?: {series?: number}, change: number|null, low: number|null, high: number|null, of_ratio: boolean,
 *   good: string, bad: string, conditions: string[], headline: string, sentence: string, bisect: string,
 *   note: string, run: number, series: number[]}} TrendEvent
 *
 * Closeness is 1 at the limit, -1 without one:
 * @typedef {{broken: boolean, changed: "worse"|"better"|"", closeness: number}} Rank
 *
 * @typedef {{stat: string, series: Series}} Line
 *
 * One quantity of a case on a board; `text` is what the text filter looks in:
 * @typedef {{key: string, product: string, rack: string, board: string, kind: string, simulated: string, mixed?: boolean, profile: string,
 *   target: string, bench: string, case_id: string, label: string, quantity: string, unit: string,
 *   lines: Line[], events: number[], rank: Rank, measuredNow: boolean, text: string}} Chart
 *
 * @typedef {{schema: number, title: string, remark: string,
 *   links: {home: string, tests: string}, runs: Runs, series: Series[],
 *   events: TrendEvent[],
 *   notes: string[], dropped_runs: number}} TrendFile
 *
 * @typedef {TrendFile & {details: Record<string, any>, charts: Chart[], keys: Map<string, Chart>,
 *   chartOf: Map<Series, Chart>}} Trend
 *
 * What the address says; dates as 2026-03-04:
 * @typedef {{text: string, product: string, board: string, rack: string, kind: string, target: string, bench: string,
 *   stat: string[], changed: boolean, broken: boolean, from: string, to: string, event: number|null,
 *   chart: string, tab: string, all: boolean, theme: string}} State
 */
export {};
