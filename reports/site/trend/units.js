// SPDX-License-Identifier: Apache-2.0
/** Units as hil/base/units.py names them, and how a person writes a value. */

/**
 * Units that grow into one another, the largest first: [name, how many of the smallest, symbol].
 *
 * @type {[string, number, string][][]}
 */
const LADDERS = [
  [["s", 1e9, "s"], ["ms", 1e6, "ms"], ["us", 1e3, "µs"], ["ns", 1, "ns"]],
  [["gbps", 1e9, "Gbit/s"], ["mbps", 1e6, "Mbit/s"], ["kbps", 1e3, "kbit/s"], ["bps", 1, "bit/s"]],
  [["ma", 1e6, "mA"], ["ua", 1e3, "µA"], ["na", 1, "nA"]],
  [["mj", 1e6, "mJ"], ["uj", 1e3, "µJ"], ["nj", 1, "nJ"]],
  [["mib", 2 ** 20, "MiB"], ["kib", 2 ** 10, "KiB"], ["bytes", 1, "B"]],
];
const MOST_DECIMALS = 6;
/** @type {Record<string, [number, string]>} */
const FIXED = {
  ratio: [100, "%"], percent: [1, "%"], permille: [0.1, "%"], count: [1, ""], cycles: [1, "cycles"],
  dbm: [1, "dBm"], ops: [1, "ops/s"], value: [1, ""],
};

/** The unit in which `largest`, given in `unit`, is at least 1: value × factor is the amount in symbol. */
export function shownUnit(/** @type {string} */ unit, /** @type {number} */ largest) {
  if (FIXED[unit]) return { factor: FIXED[unit][0], symbol: FIXED[unit][1] };
  for (const ladder of LADDERS) {
    const own = ladder.find(([name]) => name === unit);
    if (!own) continue;
    const [, size, symbol] = ladder.find(([, size]) => Math.abs(largest) * own[1] >= size) ?? own;
    return { factor: own[1] / size, symbol };
  }
  return { factor: 1, symbol: unit };
}

/** Three significant digits, thousands separated: 0.0251, 7.12, 36.8, 1,200. */
export function digits(/** @type {number} */ amount) {
  const size = Math.abs(amount);
  const decimals = size === 0 ? 0 : Math.min(MOST_DECIMALS, Math.max(0, 2 - Math.floor(Math.log10(size))));
  const text = amount.toFixed(decimals);
  const plain = decimals ? text.replace(/\.?0+$/, "") : text;
  return plain.includes(".") ? plain : plain.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A value with the unit that reads best for it: "36.8 ms". */
export function quantity(/** @type {number} */ value, /** @type {string} */ unit) {
  const shown = shownUnit(unit, value);
  return `${digits(value * shown.factor)} ${shown.symbol}`.trim();
}
