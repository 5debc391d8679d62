// SPDX-License-Identifier: Apache-2.0
/** What the page says of runs, events, series and charts. */
import { effectOf } from "./model.js";
import { excess, mainLine } from "./points.js";
import { quantity } from "./units.js";

const HALF_A_DAY_MS = 12 * 3_600_000;
/** Direction says which way the figures went; a board or its surroundings have a sign of their own. */
const SIGNS = { board: "◆", environment: "○", unclear: "?" };

/** "1 board", "2 boards". */
export const count = (/** @type {number} */ number, /** @type {string} */ noun) =>
  `${number.toLocaleString("en-GB")} ${noun}${number === 1 ? "" : "s"}`;

/** "virtual", "emulated", "virtual, simulated noise", or "" for a board of silicon. */
export const kindWords = ({ kind, simulated }) => [kind === "physical" ? "" : kind, simulated && `simulated ${simulated}`].filter(Boolean).join(", ");

/** "e1 (virtual)": what is read alone, such as a dialog's heading, says the kind in any case. */
export const boardAndKind = (/** @type {Chart|Series} */ one) => (kindWords(one) ? `${one.board} (${kindWords(one)})` : one.board);

/** "e1 (virtual)" where the page has boards of several kinds, else "e1": the head of the page names the kind. */
export const boardWords = (/** @type {Chart|Series} */ one) => (one.mixed === false ? one.board : boardAndKind(one));

/** "publish latency p95". */
export const metricWords = ({ quantity: name, stat }) => `${name} ${stat}`.trim();

/** "publish transport=tls"; the bench alone where all parameters are the defaults. */
export const caseWords = ({ bench, label }) => (!label || label === "defaults" ? bench : `${bench} ${label}`);

/** "lab/e1, lab/e2", or "8 boards". */
export const boardsWords = (/** @type {string[]} */ boards) => (boards.length > 2 ? count(boards.length, "board") : boards.join(", "));

/** "+12 %"; "" where it is not known. */
export function signedPercent(/** @type {number|null|undefined} */ change) {
  if (typeof change !== "number" || !Number.isFinite(change)) return "";
  const size = Math.abs(change) * 100;
  return `${change < 0 ? "−" : "+"}${size >= 9.95 ? Math.round(size) : Number(size.toFixed(1))} %`;
}

/** "+12 to +14 %"; "" where no interval is known. */
export function interval({ low, high }) {
  const [from, to] = [signedPercent(low), signedPercent(high)];
  return from && to ? `${from.replace(" %", "")} to ${to}` : "";
}

/** "2026-03-04 01:15" of a run. */
export const timeOf = (/** @type {Pick<Trend, "runs">} */ { runs }, /** @type {number} */ run) =>
  runs.started_utc[run].slice(0, 16).replace("T", " ");

/** The short commit of a run, "+" where the sources had changes; else its time. */
export function runName(/** @type {Trend} */ { runs }, /** @type {number} */ run) {
  const commit = runs.commit[run];
  return commit ? `${commit.slice(0, 7)}${runs.dirty[run] ? "+" : ""}` : runs.started_utc[run].slice(11, 16);
}

/** The date of the evening of the night, from noon to noon UTC, in which a run started. */
export const nightOf = (/** @type {Trend} */ { runs }, /** @type {number} */ run) =>
  new Date(Date.parse(runs.started_utc[run]) - HALF_A_DAY_MS).toISOString().slice(0, 10);

/** "365 nights, 8 boards, 2 racks; newest 91bc1e2 of 2026-11-20". */
export function scope(/** @type {Trend} */ trend) {
  const { runs, charts } = trend;
  if (!runs.id.length) return "No run has measured anything yet.";
  const nightly = runs.trigger.every((trigger) => trigger === "nightly");
  const span = nightly ? count(new Set(runs.started_utc.map((started) => started.slice(0, 10))).size, "night") : count(runs.id.length, "run");
  const boards = new Set(charts.map(({ rack, board }) => `${rack}/${board}`)).size;
  const newest = runs.id.length - 1;
  const commit = runs.commit[newest] && `${runName(trend, newest)} `;
  return `${span}, ${count(boards, "board")}, ${count(new Set(runs.rack).size, "rack")}; newest ${commit}of ${timeOf(trend, newest).slice(0, 10)}`;
}

/** What besides silicon was measured: "virtual", "emulated", "simulated noise". */
export const unreal = (/** @type {Trend} */ { charts }) =>
  [...new Set(charts.flatMap((chart) => kindWords(chart).split(", ").filter(Boolean)))].sort();

/** Why no event is listed. */
export function nothingChanged(/** @type {Trend} */ trend) {
  const nights = trend.series.map(({ levels, points }) =>
    new Set(levels.flatMap(({ from, to }) => points.run.slice(from, to + 1)).map((run) => nightOf(trend, run))).size);
  const most = nights.reduce((a, b) => Math.max(a, b), 0);
  return most ? `No change point in ${count(most, "night")}.` : "No night was judged: change points come from nightly runs.";
}

/** "▲", "▼", "◆", … */
export const sign = ({ cause, change }) => SIGNS[cause] ?? ((change ?? 0) < 0 ? "▼" : "▲");

/** The class of an event's sign: red only where the firmware got worse. */
export function tone({ cause, effect }) {
  if (cause === "unclear") return "neutral";
  return effect === "better" ? "good" : cause === "firmware" && effect === "worse" ? "bad" : "unsure";
}

/** "19.2 ms → 31.6 ms". */
export const stepWords = (/** @type {Series} */ { unit }, { before, after }) =>
  (before === null || after === null ? "" : `${quantity(before, unit)} → ${quantity(after, unit)}`);

/** "open 59 nights", "ended 2026-10-02, after 20 nights"; "" in an older file. */
export function lasting({ state, ended, open_nights: nights }) {
  if (nights === undefined) return "";
  return state === "ended" ? `ended ${ended}, after ${count(nights, "night")}` : `open ${count(nights, "night")}`;
}

/** A value of a point: "≥ 31 ms". */
export const valueWords = (/** @type {Pick<Point, "value"|"atLeast">} */ { value, atLeast }, /** @type {string} */ unit) =>
  (value === null ? "not measured" : `${atLeast ? "≥ " : ""}${quantity(value, unit)}`);

/** "", ", broken", ", beyond it (advice)" or ", beyond it, not provably". */
export function excessWords(/** @type {Point} */ point, /** @type {Series} */ series) {
  const how = excess(point, series);
  return how === "beyond" ? (series.blocking ? ", beyond it, not provably" : ", beyond it (advice)") : how && ", broken";
}

/** What a run measured: when, which commit, then each line with its interval and limit. */
export function runWords(/** @type {Trend} */ trend, /** @type {Drawn[]} */ lines, /** @type {number} */ run) {
  const said = lines.flatMap(({ stat, series, points }) => {
    const point = points.find((each) => each.run === run);
    if (!point) return [];
    const { value, low, high, limit } = point;
    const range = value === null || low === null || high === null ? "" : ` (${quantity(low, series.unit)} – ${quantity(high, series.unit)})`;
    const against = limit === null ? "" : ` · limit ${quantity(limit, series.unit)}${excessWords(point, series)}`;
    return [`${stat} ${valueWords(point, series.unit)}${range}${against}`.trim()];
  });
  return [`${timeOf(trend, run)} · ${runName(trend, run)}`, ...(said.length ? said : ["not measured"])];
}

/** A chart in words, for who does not see it: what it is, what was measured now, what changed when and why. */
export function describe(/** @type {Trend} */ trend, /** @type {Chart} */ chart, /** @type {Drawing} */ { main, runs, changes }) {
  const point = main.points.find(({ position }) => position === main.series.now);
  const limit = point && point.limit !== null ? `, limit ${quantity(point.limit, main.series.unit)}${excessWords(point, main.series)}` : "";
  const now = point ? `${valueWords(point, main.series.unit)} now${limit}` : "not measured in this run";
  const steps = changes.map(({ line, change, run }) => {
    const { cause = "unclear" } = trend.events[change.event] ?? {};
    const what = `${line.stat} ${signedPercent(change.change) || "changed"}`.trim();
    return `${what} on ${timeOf(trend, run).slice(0, 10)} since ${runName(trend, run)}, ${cause}`;
  });
  const name = `${metricWords({ ...chart, stat: main.stat })} on ${boardAndKind(chart)}`;
  return `${name}: ${now}. ${steps.join("; ") || "No change found"}. ${count(runs.length, "run")}.`;
}

/**
 * One change for each event, the newest first: that of the main line, else of the line that it moved most.
 *
 * @param {Line[]} lines
 */
export function changesOf(lines) {
  const main = mainLine(lines);
  const all = lines.flatMap((line) => line.series.changes.map((change) => ({ line, change, run: line.series.points.run[change.position] })))
    .sort((a, b) => Number(b.line === main) - Number(a.line === main) || Math.abs(b.change.change) - Math.abs(a.change.change));
  return [...Map.groupBy(all, ({ change, run }) => `${change.event}@${run}`).values()].map(([most]) => most).sort((a, b) => b.run - a.run);
}

/** The tone of a change in one line of a chart. */
export const changeTone = (/** @type {string} */ cause, /** @type {Change} */ { change }, /** @type {Series} */ { direction }) =>
  tone({ cause, effect: effectOf(change, direction) });
