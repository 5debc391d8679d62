// SPDX-License-Identifier: Apache-2.0
/** Where things stand in a chart: runs on x, amounts on y. */
import { scaleLinear, scaleLog, scaleUtc } from "d3-scale";

import { mainLine, pointsOf } from "./points.js";
import { digits, shownUnit } from "./units.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./points.js").Point} Point */
/**
 * @typedef {{line: Line, points: Point[]}} Drawn  a line with its points, oldest first
 * @typedef {{width: number, height: number, left: number, right: number, top: number,
 *            bottom: number}} Box  pixels
 * @typedef {{box: Box, runs: number[], lines: Drawn[], main: Drawn, unit: {factor: number, symbol: string},
 *            low: number, high: number, x: (run: number) => number, y: (value: number) => number, byDate: boolean,
 *            dense: boolean, yTicks: {y: number, text: string}[],
 *            xTicks: {x: number, text: string, below: string, anchor: string}[]}} Layout
 *            `low` and `high` are the ends of y, in the series' unit; x takes an index into the trend's runs
 */

const SPAN_BY_DATE_MS = 14 * 86_400_000;
const LARGE_PX = 560;
const MOST_DOTS = 40; // more runs than this: a line without dots
const MOST_LABELS = 5;
const LABEL_PX = 62;
const LIMIT_REACH = 3; // a limit further up than this many times the values would flatten them
const AIR = 0.08; // of the range of the values, above and below them
const LEAST = 1e-12; // below this, everything is zero
const DECADES = 6; // on a logarithmic axis, at most

/** A coordinate with at most one decimal. */
export const at = (/** @type {number} */ value) => Math.round(value * 10) / 10;

/**
 * @param {{trend: Trend, lines: Line[], width?: number, height?: number, log?: boolean, ends?: [number, number]}} what
 *   ends: of y, in the series' unit, in place of zero and a round amount above everything
 * @returns {Layout}
 */
export function layoutOf({ trend, lines: wanted, width = 380, height, log = false, ends }) {
  const lines = wanted.map((line) => ({ line, points: pointsOf(line.series) }));
  const main = lines[wanted.indexOf(mainLine(wanted))];
  const runs = [...new Set(lines.flatMap(({ points }) => points.map(({ run }) => run)))].sort((a, b) => a - b);
  const box = boxOf(width, height ?? (width < LARGE_PX ? 190 : 320), lines.length > 1);
  const vertical = yAxis({ lines, main, box, log, given: ends });
  return {
    box, runs, lines, main, ...vertical, ...xAxis(trend, runs, box), dense: runs.length > MOST_DOTS,
  };
}

/** Room for the signs of changes above, two rows of labels below and the lines' names on the right. */
function boxOf(width, height, named) {
  return { width, height, left: 52, right: width - (named ? 38 : 14), top: 20, bottom: height - 34 };
}

/** Ends of an axis that holds what these series measured, with some air, and nothing else: limits may lie off it. */
export function fittedEnds(/** @type {import("./types.js").Series[]} */ series) {
  const values = series.flatMap((one) => pointsOf(one).flatMap(({ value, reference }) => [value, reference]))
    .filter((value) => value !== null);
  const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  if (!values.length) return undefined;
  const air = Math.max((high - low) * AIR, Math.abs(high) * AIR / 10, LEAST);
  return /** @type {[number, number]} */ ([low - air, high + air]);
}

function yAxis({ lines, main, box, log, given }) {
  const { low, high, least } = given ? { low: given[0], high: given[1], least: given[1] } : extent(lines, main);
  const unit = shownUnit(lines[0].line.series.unit, Math.max(high, -low));
  /** @type {[number, number]} */
  const ends = given ?? (log && high > 0 ? logEnds(least, high) : linearEnds(low, high, unit.factor));
  const logarithmic = log && high > 0 && !given;
  const scale = (logarithmic ? scaleLog() : scaleLinear()).domain(ends).range([box.bottom, box.top]);
  const y = (/** @type {number} */ value) => at(scale(Math.min(ends[1], Math.max(ends[0], value))));
  const many = box.bottom - box.top > 200 ? 5 : 3;
  const ticks = logarithmic ? decades(ends) : given ? inside(ends, unit.factor, many) : steps(ends, unit.factor, many);
  const yTicks = ticks.map((value, index) => ({
    y: y(value), text: `${digits(value * unit.factor)}${index === ticks.length - 1 ? ` ${unit.symbol}` : ""}`.trim(),
  }));
  return { unit, low: ends[0], high: ends[1], y, yTicks };
}

/** The smallest and largest amount, zero included, and the smallest above zero; far limits do not count. */
function extent(lines, main) {
  let [low, high, least] = [0, 0, Infinity];
  const take = (/** @type {number|null} */ value) => {
    if (value === null) return;
    low = Math.min(low, value);
    high = Math.max(high, value);
    if (value > LEAST) least = Math.min(least, value);
  };
  for (const { points } of lines) points.forEach(({ value }) => take(value));
  main.points.forEach(({ high: upper, reference }) => { take(upper); take(reference); });
  const reach = high * LIMIT_REACH;
  for (const { points } of lines) {
    points.forEach(({ limit }) => { if (limit !== null && (limit <= reach || reach === 0)) take(limit); });
  }
  return { low, high, least };
}

/** @returns {[number, number]} */
function linearEnds(low, high, factor) {
  const end = (/** @type {number} */ amount) => (amount * factor < LEAST ? 0 : niceTop(amount * factor) / factor);
  const [bottom, top] = [-end(-low), end(high)];
  return bottom === 0 && top === 0 ? [0, 1 / factor] : [bottom, top];
}

/** @returns {[number, number]} */
function logEnds(least, high) {
  const top = 10 ** Math.ceil(Math.log10(Math.max(high, LEAST) * 1.001));
  const bottom = 10 ** Math.floor(Math.log10(Math.min(least, high)));
  return [Math.max(bottom, top / 10 ** DECADES), top];
}

/** The next of 1, 1.5, 2, 3, 4, 5, 6, 8 × 10ⁿ above `amount`, with some room. */
export function niceTop(/** @type {number} */ amount) {
  const power = 10 ** Math.floor(Math.log10(amount * 1.04));
  const found = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= amount * 1.04) ?? 10;
  return found * power;
}

/** Round amounts of the shown unit; the ends are among them. */
function steps([bottom, top], factor, count) {
  const inner = scaleLinear().domain([bottom * factor, top * factor]).ticks(count);
  const own = inner.map((/** @type {number} */ amount) => amount / factor).filter((/** @type {number} */ value) => value < top * 0.999);
  return [...own, top];
}

/** Round amounts between the ends. */
function inside([bottom, top], factor, count) {
  return scaleLinear().domain([bottom * factor, top * factor]).ticks(count).map((/** @type {number} */ amount) => amount / factor);
}

function decades([bottom, top]) {
  const count = Math.round(Math.log10(top / bottom));
  return Array.from({ length: count + 1 }, (_, n) => bottom * 10 ** n);
}

export function xAxis(trend, runs, { left, right }) {
  const time = (/** @type {number} */ run) => Date.parse(trend.runs.started_utc[run]);
  const [inner, outer] = [left + 6, right - 6];
  const [first, last] = runs.length ? [time(runs[0]), time(runs[runs.length - 1])] : [0, 0];
  const byDate = last - first > SPAN_BY_DATE_MS;
  const order = new Map(runs.map((run, index) => [run, index]));
  const gap = (outer - inner) / Math.max(1, runs.length - 1);
  const byTime = scaleUtc().domain([first, last]).range([inner, outer]);
  const x = (/** @type {number} */ run) => {
    if (runs.length === 1) return at((left + right) / 2);
    return at(byDate ? byTime(time(run)) : inner + (order.get(run) ?? 0) * gap);
  };
  const room = Math.min(MOST_LABELS, Math.max(2, Math.floor((right - left) / LABEL_PX)));
  return { x, byDate, xTicks: byDate ? dateTicks(byTime, room) : runTicks(trend, runs, x, room) };
}

/** Days at round distances; the year stands below where it begins. */
function dateTicks(byTime, most) {
  let count = most;
  let found = byTime.ticks(count);
  while (found.length > most && count > 1) found = byTime.ticks(--count);
  found = found.slice(0, most);
  const monthly = found.every((/** @type {Date} */ date) => date.getUTCDate() === 1);
  let year = "";
  return found.map((/** @type {Date} */ date) => {
    const iso = date.toISOString();
    if (monthly) return { x: at(byTime(date)), text: iso.slice(0, 7), below: "", anchor: "m" };
    const below = iso.slice(0, 4) === year ? "" : iso.slice(0, 4);
    year = iso.slice(0, 4);
    return { x: at(byTime(date)), text: iso.slice(5, 10), below, anchor: "m" };
  });
}

/** Runs at even distances and the newest: the commit, below it the date, or the time within one day. */
function runTicks(trend, runs, x, most) {
  if (!runs.length) return [];
  const started = (/** @type {number} */ run) => trend.runs.started_utc[run];
  const newest = runs.length - 1;
  const every = Math.max(1, Math.ceil(newest / Math.max(1, most - 1)));
  const sameDay = started(runs[0]).slice(0, 10) === started(runs[newest]).slice(0, 10);
  return runs.map((run, index) => ({ run, index }))
    .filter(({ index }) => index === newest || (index % every === 0 && newest - index >= every * 0.7))
    .map(({ run }) => ({ x: x(run), text: runName(trend, run), below: started(run).slice(...(sameDay ? [11, 16] : [5, 10])), anchor: "m" }));
}

/** How a run is named: its short commit, "+" where the sources had changes; else its time. */
export function runName(/** @type {Trend} */ { runs }, /** @type {number} */ run) {
  const commit = runs.commit[run];
  return commit ? `${commit.slice(0, 7)}${runs.dirty[run] ? "+" : ""}` : runs.started_utc[run].slice(11, 16);
}

/** The run that stands nearest to `pixel`, as a position in the layout's runs; -1 where there is none. */
export function nearestRun(/** @type {Layout} */ { runs, x }, /** @type {number} */ pixel) {
  let [low, high] = [0, runs.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x(runs[middle]) > pixel) high = middle;
    else low = middle;
  }
  if (high < 0) return -1;
  return pixel - x(runs[low]) <= x(runs[high]) - pixel ? low : high;
}
