// SPDX-License-Identifier: Apache-2.0
/**
 * What was measured in detail in the runs that are reported, and why it is not there where it is not.
 *
 * @typedef {{scale: string, edges: number[], candidate: number[], other: number[]|null, role: string|null,
 *            candidate_samples: number, other_samples: number|null,
 *            limits: {stat: string, value: number}[]}} Distribution  counts between the edges
 * @typedef {{role: string[], index: number[], stats: Record<string, (number|null)[]>}} Boots  columns, in the
 *            order in which they were measured
 * @typedef {{boot: number[], time_s: number[], value: number[], of: number, failed_time_s: number[]}} Samples
 *            columns, thinned; `of` is how many there were
 * @typedef {{symptom: string, count: number, filter: string}} Symptom
 * @typedef {{run: number, unit: string, test: string, distribution: Distribution|null, boots: Boots|null,
 *            samples: Samples|null, wire: Symptom[], wire_note: string,
 *            files: {text: string, href: string}[]}} Detail  of one quantity of a case on a board
 */
import { pointsOf } from "./points.js";
import { runName } from "./scale.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").Chart} Chart */

/** @returns {Detail|undefined} */
export function detailOf(/** @type {Trend} */ trend, /** @type {Chart} */ chart) {
  const { details } = trend;
  return details && Object.hasOwn(details, chart.key) ? details[chart.key] : undefined;
}

/**
 * Why a chart has no details: the run that is reported did not measure it, or kept nothing of it.
 *
 * @param {Trend} trend
 * @param {Chart} chart
 */
export function whyNoDetail(trend, chart) {
  if (chart.measuredNow) return "The run that is reported kept only summaries of this figure; its samples are not in the report.";
  const last = Math.max(-1, ...chart.lines.flatMap(({ series }) =>
    pointsOf(series).filter(({ value }) => value !== null).map(({ run }) => run)));
  if (last < 0) return "No run has measured this figure.";
  const day = trend.runs.started_utc[last].slice(0, 10);
  return `This report is about another run. This figure was last measured on ${day} (${runName(trend, last)}); `
    + "its samples are in the folder of that run.";
}

/** Which run a detail is about: "run of 2026-11-20 01:15, 91bc1e2". */
export function detailRun(/** @type {Trend} */ trend, /** @type {Detail} */ { run }) {
  const when = trend.runs.started_utc[run];
  return when === undefined ? "" : `run of ${when.slice(0, 16).replace("T", " ")}, ${runName(trend, run)}`;
}

/** How a role of an image is written: "candidate", "base" or "reference firmware". */
export const roleWords = (/** @type {string|null} */ role) => (role === "reference" ? "reference firmware" : role ?? "");

/** An address that may be linked to: http, https or a place within the report; anything else is "". */
export function placeLink(/** @type {string} */ address) {
  if (/^https?:\/\//.test(address)) return address;
  return /^(?!\/\/)[^:\\/?#]*(?:[\/?#][^\\]*)?$/.test(address) && !/[\u0000-\u0020]/.test(address) ? address : "";
}
