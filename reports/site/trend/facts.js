// SPDX-License-Identifier: Apache-2.0
/**
 * The page's own sentences: what it is about, and how an event or a series reads in a table.
 *
 * @typedef {import("./types.js").Trend} Trend
 * @typedef {import("./types.js").TrendEvent} TrendEvent
 * @typedef {import("./types.js").Series} Series
 */
import { quantity } from "./units.js";
import { kindWords, signedPercent } from "./words.js";

const HALF_A_DAY_MS = 12 * 3_600_000;
/** Direction says which way the figures went; a board or its surroundings have a sign of their own. */
const SIGNS = { board: "◆", environment: "○", unclear: "?" };

/** "365 nights, 8 boards, 2 racks; newest 91bc1e2 of 2026-11-20". */
export function scope(/** @type {Trend} */ trend) {
  const { runs, charts } = trend;
  if (!runs.id.length) return "No run has measured anything yet.";
  const boards = new Set(charts.map(({ rack, board }) => `${rack}/${board}`)).size;
  const counts = [spanOf(trend), count(boards, "board"), count(new Set(runs.rack).size, "rack")];
  const newest = runs.id.length - 1;
  const commit = runs.commit[newest].slice(0, 7) + (runs.dirty[newest] ? "+" : "");
  return `${counts.join(", ")}; newest ${[commit, `of ${day(trend, newest)}`].filter(Boolean).join(" ")}`;
}

/** "365 nights" where all runs are nightly ones, else "12 runs". */
export function spanOf(/** @type {Trend} */ { runs }) {
  const nightly = runs.trigger.every((trigger) => trigger === "nightly");
  return nightly ? count(new Set(runs.started_utc.map((started) => started.slice(0, 10))).size, "night") : count(runs.id.length, "run");
}

/** What besides measured silicon is among the figures: "virtual", "emulated", "simulated noise". */
export function unreal(/** @type {Trend} */ { charts }) {
  const found = new Set(charts.flatMap((chart) => kindWords(chart).split(", ").filter(Boolean)));
  return [...found].sort();
}

/** A sentence for figures that are not measured on silicon; the report's own one where it has one. */
export function unrealSentence(/** @type {Trend} */ trend) {
  const found = unreal(trend);
  const own = `Among the figures are ${found.join(", ")} ones: they are not those of a chip.`;
  return found.length ? trend.remark || own : "";
}

/** Why no event is listed. */
export function nothingChanged(/** @type {Trend} */ trend) {
  const nights = judgedNights(trend);
  return nights ? `No change point in ${count(nights, "night")}.` : "No night was judged: change points come from nightly runs.";
}

/** Of how many nights the levels tell; the page may draw older ones, too. */
function judgedNights(/** @type {Trend} */ trend) {
  return trend.series.reduce((most, { levels, points }) => {
    const runs = levels.flatMap(({ from, to }) => points.run.slice(from, to + 1));
    return Math.max(most, new Set(runs.map((run) => nightOf(trend, run))).size);
  }, 0);
}

/** "▲ worse", "▼ better", "◆ worse", … */
export function sign(/** @type {TrendEvent} */ { cause, change }) {
  return SIGNS[cause] ?? ((change ?? 0) < 0 ? "▼" : "▲");
}

/** The class of an event's sign: red only where the firmware got worse. */
export function tone(/** @type {TrendEvent} */ { cause, effect }) {
  if (cause === "unclear") return "neutral";
  if (effect === "better") return "good";
  return cause === "firmware" && effect === "worse" ? "bad" : "unsure";
}

/**
 * "virtual", "virtual, simulated noise", …, or "" where all of an event's series were measured on silicon.
 */
export function kindsOf(/** @type {Trend} */ trend, /** @type {number} */ index) {
  const series = trend.events[index].series.map((number) => trend.series[number]).filter(Boolean);
  return [...new Set(series.filter(({ mixed }) => mixed !== false).map((item) => kindWords(item)))].filter(Boolean).join("; ");
}

/** "19.2 ms → 31.6 ms" of the event's most telling series, or "". */
export function beforeAfter(/** @type {Trend} */ trend, /** @type {number} */ index) {
  const series = trend.series[trend.events[index].series[0]];
  const change = series?.changes.find(({ event }) => event === index);
  return change ? stepWords(series, change) : "";
}

/** "19.2 ms → 31.6 ms". */
export function stepWords(/** @type {Series} */ { unit }, { before, after }) {
  return before === null || after === null ? "" : `${quantity(before, unit)} → ${quantity(after, unit)}`;
}

/** "+12 to +14 %"; "" where no interval is known. */
export function interval({ low, high }) {
  const [from, to] = [signedPercent(low), signedPercent(high)];
  return from && to ? `${from.replace(" %", "")} to ${to}` : "";
}

/** "open 59 nights", "ended 2026-10-02, after 20 nights"; "" in an older file. */
export function lasting({ state, ended, open_nights: nights }) {
  if (nights === undefined) return "";
  return state === "ended" ? `ended ${ended}, after ${count(nights, "night")}` : `open ${count(nights, "night")}`;
}

/** "lab/e1, lab/e2", or "8 boards" where a cell has no room for them. */
export function boardsWords(/** @type {string[]} */ boards, most = 2) {
  return boards.length > most ? `${boards.length} boards` : boards.join(", ");
}

/** "publish transport=tls"; the bench alone where all parameters are the defaults. */
export const caseWords = ({ bench, label }) => (!label || label === "defaults" ? bench : `${bench} ${label}`);

/** "2026-03-04" of a run. */
export const day = (/** @type {Trend} */ { runs }, /** @type {number} */ run) => (runs.started_utc[run] ?? "").slice(0, 10);

/** Of the night, from noon to noon UTC, in which a run started: the date of its evening. */
export function nightOf(/** @type {Trend} */ { runs }, /** @type {number} */ run) {
  const started = Date.parse(runs.started_utc[run] ?? "");
  return Number.isNaN(started) ? "" : new Date(started - HALF_A_DAY_MS).toISOString().slice(0, 10);
}

/** "1 board", "2 boards". */
export const count = (/** @type {number} */ number, /** @type {string} */ noun) =>
  `${String(number).replace(/\B(?=(\d{3})+$)/g, ",")} ${noun}${number === 1 ? "" : "s"}`;
