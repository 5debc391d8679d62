// SPDX-License-Identifier: Apache-2.0
/** Details (distribution, boots) of the newest run of sample.js. */
import { rounded } from "./sample_steps.js";

const BINS = 40;
const BOOTS = 9;

/**
 * One detail a chart, under the chart's key.
 *
 * @param {any[]} series
 * @param {number} run  index of the run that is reported
 * @param {() => number} next
 */
export function detailsOf(series, run, next) {
  /** @type {Record<string, any>} */
  const details = {};
  for (const item of series) {
    const key = `${item.rack}/${item.board}/${item.case_id}/${item.quantity}`;
    details[key] ??= detail(item, run, next);
  }
  return details;
}

function detail(item, run, next) {
  const typical = item.points.value.at(-1) || 1;
  const limit = item.points.limit.at(-1)?.[1] ?? null;
  return {
    run, unit: item.unit, test: item.test,
    distribution: distribution(typical, limit, item.stat, next),
    boots: boots(typical, next),
    files: [{ text: "samples.csv", href: "../runs/newest/samples.csv" }],
  };
}

function distribution(typical, limit, stat, next) {
  const edges = Array.from({ length: BINS + 1 }, (_, n) => rounded(typical * 10 ** (n / BINS - 0.3)));
  const counts = () => Array.from({ length: BINS }, (_, n) => Math.round(900 * Math.exp(-(((n - 12) / 5) ** 2)) * (0.7 + 0.6 * next())));
  const [candidate, other] = [counts(), counts()];
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  return {
    scale: "log", edges, candidate, other, role: "reference", candidate_samples: sum(candidate), other_samples: sum(other),
    limits: limit === null ? [] : [{ stat, value: limit }],
  };
}

function boots(typical, next) {
  const role = Array.from({ length: BOOTS * 2 }, (_, n) => (n % 2 ? "reference" : "candidate"));
  const near = (scale) => role.map(() => rounded(typical * scale * (0.97 + 0.06 * next())));
  return { role, index: role.map((_, n) => Math.floor(n / 2)), stats: { p50: near(1), p95: near(2), p99: near(3) } };
}
