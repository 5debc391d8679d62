// SPDX-License-Identifier: Apache-2.0
/**
 * What all of the sample data is made from: seeded numbers, commits, and steps that are planted.
 *
 * A step of `change` (0.12 = +12 %) from `night` on:
 * @typedef {{night: number, change: number, cause?: "firmware"|"environment"|"board"|"unclear",
 *   boards?: string[], metrics?: RegExp, cases?: RegExp}} Planted
 */

/** A seeded generator of numbers in [0, 1): mulberry32. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Five significant digits, as trend.json has them. */
export const rounded = (value) => Number(value.toPrecision(5));

/** The commit of a night: forty hexadecimal digits. */
export function commitOf(night) {
  const next = random(night + 99);
  return Array.from({ length: 40 }, () => Math.floor(next() * 16).toString(16)).join("");
}

/**
 * Whether a planted step moves this series.
 *
 * @param {Planted} step
 */
export function concerns({ boards, metrics, cases }, place, metric) {
  return (!boards || boards.includes(place.board)) && (metrics ?? /latency/).test(metric) && (cases ?? /./).test(place.case_id);
}
