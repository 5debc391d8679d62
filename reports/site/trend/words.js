// SPDX-License-Identifier: Apache-2.0
/** What a chart shows, in words: for those who cannot see it, and for the line under the cursor. */
import { excess, mainLine, pointsOf } from "./points.js";
import { runName } from "./scale.js";
import { quantity } from "./units.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").Chart} Chart */
/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./points.js").Point} Point */

/** "virtual", "emulated", "virtual, simulated noise", or "" for a board of silicon. */
export function kindWords({ kind, simulated }) {
  return [kind === "physical" ? "" : kind, simulated ? `simulated ${simulated}` : ""].filter(Boolean).join(", ");
}

/** "e1 (virtual)" where the page has boards of several kinds, else "e1": what all are is said once, at its head. */
export const boardWords = (/** @type {Chart|import("./types.js").Series} */ chart) => (chart.mixed === false ? chart.board : boardAndKind(chart));

/** "e1 (virtual)": what is read alone, such as a chart's title and a dialog's heading, says the kind in any case. */
export function boardAndKind(/** @type {Chart|import("./types.js").Series} */ chart) {
  const kind = kindWords(chart);
  return kind ? `${chart.board} (${kind})` : chart.board;
}

/** "+12 %"; "" where it is not known. */
export function signedPercent(/** @type {number|null|undefined} */ change) {
  if (typeof change !== "number" || !Number.isFinite(change)) return "";
  const size = Math.abs(change) * 100;
  const text = size >= 9.95 ? String(Math.round(size)) : String(Number(size.toFixed(1)));
  return `${change < 0 ? "−" : "+"}${text} %`;
}

/** A value of a point as it reads: "≥ 31 ms". */
export function valueWords(/** @type {Point} */ { value, atLeast }, /** @type {string} */ unit) {
  return value === null ? "not measured" : `${atLeast ? "≥ " : ""}${quantity(value, unit)}`;
}

/** "", ", broken", ", beyond it (advice)" or ", beyond it, not provably". */
export function excessWords(point, series) {
  const how = excess(point, series);
  if (how === "broken") return ", broken";
  if (how === "beyond") return series.blocking ? ", beyond it, not provably" : ", beyond it (advice)";
  return "";
}

/** The chart's name with what it says now, one sentence part a thing: the content of <title>. */
export function titleWords(/** @type {Chart} */ chart, /** @type {Line[]} */ lines) {
  const { stat, series } = mainLine(lines);
  const name = `${chart.quantity} ${stat}`.trim();
  return `${name} on ${boardAndKind(chart)}: ${nowWords(series)}`;
}

function nowWords(series) {
  if (series.now === null || series.now === undefined) return "not measured in this run";
  const point = pointsOf(series)[series.now];
  if (!point) return "not measured in this run";
  const limit = point.limit === null ? "" : `, limit ${quantity(point.limit, series.unit)}${shortExcess(point, series)}`;
  return `${valueWords(point, series.unit)} now${limit}`;
}

function shortExcess(point, series) {
  const how = excess(point, series);
  return how === "broken" ? " broken" : how ? " exceeded" : "";
}

/** What changed when, at which commit and why, then how many runs there are: the content of <desc>. */
export function describe(/** @type {Trend} */ trend, /** @type {Line[]} */ lines, /** @type {number[]} */ runs) {
  const changes = changesOf(lines).map((change) => changeWords(trend, change));
  const day = (/** @type {number} */ run) => trend.runs.started_utc[run].slice(0, 10);
  const span = runs.length === 0 ? "No run." : runs.length === 1 ? `One run, ${day(runs[0])}.`
    : `${runs.length} runs from ${day(runs[0])} to ${day(runs[runs.length - 1])}.`;
  return `${changes.length ? `${changes.join("; ")}.` : "No change found."} ${span}`;
}

/**
 * One change an event: that of the main line, else of the line that it moved most; the newest first.
 *
 * @param {Line[]} lines
 * @returns {{line: Line, change: import("./types.js").Change}[]}
 */
export function changesOf(lines) {
  const byEvent = new Map();
  const main = mainLine(lines);
  for (const line of [main, ...lines.filter((each) => each !== main)]) {
    for (const change of line.series.changes) {
      const key = `${change.event}@${line.series.points.run[change.position]}`;
      const found = byEvent.get(key);
      if (!found || (found.line !== main && Math.abs(change.change) > Math.abs(found.change.change))) byEvent.set(key, { line, change });
    }
  }
  const run = (/** @type {any} */ { line, change }) => line.series.points.run[change.position];
  return [...byEvent.values()].sort((a, b) => run(b) - run(a));
}

/** "p99 up 12 % on 2026-03-04 since 91bc1e2, firmware". */
function changeWords(trend, { line, change }) {
  const run = line.series.points.run[change.position];
  const event = trend.events[change.event];
  const amount = signedPercent(change.change);
  const how = amount ? `${change.change < 0 ? "down" : "up"} ${amount.slice(1)}` : "changed";
  const what = line.stat ? `${line.stat} ${how}` : how;
  return `${what} on ${trend.runs.started_utc[run].slice(0, 10)} since ${runName(trend, run)}, ${event?.cause ?? "cause unclear"}`;
}

/**
 * What is said of a run: when, which commit, then a sentence part for each line.
 *
 * @param {Trend} trend
 * @param {import("./scale.js").Drawn[]} lines
 * @param {number} run
 */
export function runWords(trend, lines, run) {
  const when = trend.runs.started_utc[run].slice(0, 16).replace("T", " ");
  const said = lines.map(({ line, points }) => {
    const point = points.find((each) => each.run === run);
    return point ? `${line.stat} ${pointWords(point, line.series)}`.trim() : "";
  }).filter(Boolean);
  return { head: `${when} · ${runName(trend, run)}`, lines: said.length ? said : ["not measured"] };
}

function pointWords(point, series) {
  const { low, high, limit } = point;
  const range = low === null || high === null || point.value === null ? "" : ` (${quantity(low, series.unit)} – ${quantity(high, series.unit)})`;
  const against = limit === null ? "" : ` · limit ${quantity(limit, series.unit)}${excessWords(point, series)}`;
  return `${valueWords(point, series.unit)}${range}${against}`;
}
