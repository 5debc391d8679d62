// SPDX-License-Identifier: Apache-2.0
/** A plot's frame: two scales, grid and labels; what stands inside it is given. */
import { html } from "htm/preact";
import { scaleLinear, scaleLog } from "d3-scale";

import { at, niceTop } from "./scale.js";
import { digits, shownUnit } from "./units.js";

const DECADES = 6; // on a logarithmic axis, at most
const LABEL_PX = 70;
const FACTORS = [1, 2, 5];
const EVERY = [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];

/**
 * @typedef {{to: (value: number) => number, ticks: {at: number, text: string}[], ends: number[],
 *            unit: {factor: number, symbol: string}}} Axis  `to` gives pixels; values outside stand at ends
 */

/**
 * An axis over values of `unit` between two pixels.
 *
 * @param {{ends: number[], unit: string, range: number[], log?: boolean, count?: number}} wanted  ends: two
 * @returns {Axis}
 */
export function makeAxis({ ends: [low, high], unit: name, range, log = false, count = 5 }) {
  const unit = shownUnit(name, Math.max(Math.abs(low), Math.abs(high)));
  const logarithmic = log && low > 0 && high > low;
  /** @type {[number, number]} */
  const ends = logarithmic || high > low ? [low, high] : [low, low + (Math.abs(low) || 1 / unit.factor)];
  const scale = (logarithmic ? scaleLog() : scaleLinear()).domain(ends).range(range);
  const to = (/** @type {number} */ value) => at(scale(Math.min(ends[1], Math.max(ends[0], value))));
  const values = logarithmic ? logTicks(ends, unit.factor, count) : linearTicks(ends, unit.factor, count);
  return { to, unit, ends, ticks: values.map((value) => ({ at: to(value), text: digits(value * unit.factor) })) };
}

/** Ends of an axis from zero to a round amount above `high`. */
export function fromZero(/** @type {number} */ high, /** @type {string} */ unit) {
  const { factor } = shownUnit(unit, high);
  return [0, high * factor > 1e-12 ? niceTop(high * factor) / factor : 1 / factor];
}

/** Ends of a logarithmic axis: decades around the values, at most six. */
export function logEnds(/** @type {number} */ low, /** @type {number} */ high) {
  const top = 10 ** Math.ceil(Math.log10(high));
  return [Math.max(10 ** Math.floor(Math.log10(low)), top / 10 ** DECADES), Math.max(top, low * 10)];
}

function linearTicks(ends, factor, count) {
  return scaleLinear().domain(ends.map((end) => end * factor)).ticks(count).map((amount) => amount / factor);
}

/** Every step of each decade where there is room, else 1, 2 and 5, or only the decades. */
function logTicks([low, high], factor, count) {
  const first = Math.floor(Math.log10(low * factor));
  const powers = Array.from({ length: Math.ceil(Math.log10(high * factor)) - first + 1 }, (_, n) => 10 ** (first + n));
  const inside = (/** @type {number[]} */ steps) => powers.flatMap((power) => steps.map((step) => (step * power) / factor))
    .filter((value) => value >= low * 0.999 && value <= high * 1.001);
  const all = inside(EVERY);
  return all.length <= count ? all : [FACTORS, [1, 3], [1]].map(inside).find((ticks) => ticks.length <= count + 2) ?? inside([1]);
}

/** How many labels an axis of this many pixels has room for. */
export const room = (/** @type {number} */ pixels) => Math.max(2, Math.floor(pixels / LABEL_PX));

/**
 * Grid and labels of both axes within a box; the unit stands at the last label of each.
 *
 * @param {{chart: import("./types.js").Chart, box: import("./scale.js").Box, x?: Axis, y: Axis,
 *          yUnit?: string, children?: any}} props
 */
export function Frame({ chart, box, x, y, yUnit = y.unit.symbol, children }) {
  const top = y.ticks.length - 1;
  return html`<g class="axes">
      ${y.ticks.map(({ at: place, text }, index) => html`<path class="grid" d=${`M${box.left} ${place}H${box.right}`} />
        <text class="e" x=${box.left - 6} y=${at(place + 3.5)}>${index === top ? `${text} ${yUnit}`.trim() : text}</text>`)}
      ${x?.ticks.map(({ at: place, text }, index) => html`<path class="grid" d=${`M${place} ${box.bottom}v4`} />
        <${LabelBelow} text=${index === x.ticks.length - 1 ? `${text} ${x.unit.symbol}`.trim() : text} x=${place} box=${box} />`)}
    </g>${children}`;
}

/** A label that would be cut off at the right ends there. */
function LabelBelow({ text, x, box }) {
  const cut = x > box.right - 24;
  return html`<text class=${cut ? "e" : "m"} x=${cut ? box.right + 8 : x} y=${box.bottom + 15}>${text}</text>`;
}
