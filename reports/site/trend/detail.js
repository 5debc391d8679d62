// SPDX-License-Identifier: Apache-2.0
/** What stands behind a chart in the reported run: how its samples are distributed, and each boot in order, by firmware. */
import { html } from "htm/preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";

import { level, pen, write } from "./marks.js";
import { axis, colour, faint, Plot } from "./plot.js";
import { drawable } from "./points.js";
import { digits, quantity, shownUnit } from "./units.js";
import { count, runName, timeOf } from "./words.js";

const HEIGHT = 220;
const KEPT_NONE = "The run that is reported kept only summaries of this figure; its samples are not in the report.";
const MEASURED_NONE = "The run that is reported did not measure this figure: the samples are in the folders of the runs that did.";
const PREFERRED = ["p99", "p95", "p90", "mean", "p50"];
const INKS = { candidate: "chart-p95", base: "chart-tail5", reference: "chart-max" };
const ink = (/** @type {string} */ role) => INKS[role] ?? "chart-one";
const named = (/** @type {string} */ role) => (role === "reference" ? "reference firmware" : role);
const sum = (/** @type {number[]} */ counts) => counts.reduce((total, number) => total + number, 0);

/** @param {{trend: Trend, chart: Chart}} props */
export function Detail({ trend, chart }) {
  const detail = trend.details[chart.key];
  if (!detail) return html`<p class="soft">${chart.measuredNow ? KEPT_NONE : MEASURED_NONE}</p>`;
  const { distribution, boots, unit, run } = detail;
  return html`<h3>Behind the run of ${timeOf(trend, run)}, ${runName(trend, run)}</h3>
    ${distribution && distribution.edges.length > 1 && sum(distribution.candidate) ? html`<${Distribution} ...${{ chart, distribution, unit }} />`
      : html`<p class="soft">The run that is reported kept no samples of this figure, only its statistics.</p>`}
    <${Boots} ...${{ chart, boots, unit }} />`;
}

const Roles = ({ roles }) => html`<ul class="chart-legend">${roles.map(({ role, of }) => html`<li key=${role}>
  <i class=${`swatch ${ink(role)}`}></i>${named(role)} <span class="of">${of}</span></li>`)}</ul>`;

/** Candidate over base or reference, each as shares of its own samples; limits are vertical lines. */
function Distribution({ chart, distribution, unit }) {
  const { edges, candidate, other, role, scale, limits, candidate_samples: samples, other_samples: others } = distribution;
  const [low, high] = [edges.find((edge) => scale !== "log" || edge > 0), edges[edges.length - 1]];
  const inside = limits.filter(({ value }) => value >= low && value <= high);
  const roles = [{ role, counts: other, samples: others }, { role: "candidate", counts: candidate, samples }]
    .filter(({ counts }) => counts && sum(counts))
    .map((one) => ({ ...one, of: count(one.samples, "sample") }));
  const made = useMemo(() => {
    const shown = shownUnit(unit, high);
    const shares = roles.map(({ counts }) => [...counts.map((number) => (100 * number) / sum(counts)), 0]);
    const log = scale === "log" && high >= 10 * low; // below a decade its axis has no labels
    return { data: [edges.map((edge) => edge * shown.factor), ...shares], options: {
      series: [{}, ...roles.map((one) => ({ stroke: () => colour(ink(one.role)), width: 1.5, points: { show: false },
        paths: uPlot.paths.stepped?.({ align: 1 }), ...(one.role === "candidate" && { fill: () => faint(colour(ink(one.role))) }) }))],
      scales: { x: { time: false, distr: log ? 3 : 1, range: () => [low * shown.factor, high * shown.factor] } }, padding: [18, 16, 0, 0],
      axes: [axis({ values: (_, places) => places.map((place) => (place === null ? "" : `${digits(place)} ${shown.symbol}`)), space: 70, size: 26 }),
        axis({ values: (_, places) => places.map((place) => `${digits(place)} %`), size: 52 })],
      hooks: { draw: [(u) => inside.forEach((limit, index) => drawLimit(u, limit.value * shown.factor, `limit ${limit.stat}`, index))] },
    } };
  }, [distribution]);
  return html`<${Roles} roles=${roles} />
    <${Plot} name=${`Samples of ${chart.quantity}: ${roles.map((one) => `${named(one.role)}, ${one.of}`).join("; ")}`} height=${HEIGHT} ...${made} />
    ${limits.filter((limit) => !inside.includes(limit)).map(({ stat, value }) => html`<p class="soft">
      The limit of ${stat || "this figure"}, ${quantity(value, unit)}, lies beyond what is drawn.</p>`)}
    ${roles.length === 1 && html`<p class="soft">No other firmware was measured in this run, so there is nothing to lay beside it.</p>`}`;
}

function drawLimit(u, value, text, index) {
  const x = u.valToPos(value, "x", true);
  const right = x > u.bbox.left + u.bbox.width * 0.85;
  pen(u, "bad", { width: 1.1, dash: [5, 4] }, (path) => { path.moveTo(x, u.bbox.top); path.lineTo(x, u.bbox.top + u.bbox.height); });
  write(u, text, x + (right ? -4 : 4), u.bbox.top + (6 + 12 * index) * uPlot.pxRatio, { align: right ? "right" : "left" });
}

/** A statistic of each boot in the order of measurement, with the median of each firmware: does it drift, are they apart? */
function Boots({ chart, boots, unit }) {
  const stat = boots && (PREFERRED.find((each) => boots.stats[each]) ?? Object.keys(boots.stats)[0]);
  const made = useMemo(() => {
    if (!boots?.role.length || stat === undefined) return null;
    const values = boots.stats[stat].map(drawable);
    const roles = [...new Set(/** @type {string[]} */ (boots.role))].map((role) => {
      const own = values.filter((value, index) => value !== null && boots.role[index] === role);
      return { role, own, of: own.length ? `median ${quantity(median(own), unit)} of ${count(own.length, "boot")}` : "no value" };
    });
    return { roles, plot: bootPlot(boots.role, values, roles, unit) };
  }, [boots]);
  if (!made) return html`<p class="soft">The run that is reported kept no values of single boots of this figure.</p>`;
  const tip = (/** @type {number} */ index) => [`${named(boots.role[index])}, boot ${boots.index[index]}`, ...Object.entries(boots.stats)
    .map(([name, column]) => `${name} ${column[index] === null ? "no value" : quantity(column[index], unit)}`.trim())];
  return html`<h3>Boot by boot <small>${stat}, in the order of measurement</small></h3><${Roles} roles=${made.roles} />
    <${Plot} name=${`${chart.quantity} ${stat} of each boot: ${made.roles.map(({ role, of }) => `${named(role)}, ${of}`).join("; ")}`}
      height=${HEIGHT}
      tip=${tip} ...${made.plot} />`;
}

/** Filled: the candidate. Hollow: what it is set beside. So they are told apart without colour. */
function bootPlot(order, values, roles, unit) {
  const shown = shownUnit(unit, Math.max(0, ...values));
  const column = (role) => values.map((value, index) => (value !== null && order[index] === role ? value * shown.factor : null));
  const point = ({ role }) => ({
    show: true, size: 8, width: 1.6, stroke: () => colour(ink(role)), fill: () => colour(role === "candidate" ? ink(role) : "card"),
  });
  const known = roles.filter(({ own }) => own.length);
  return { data: [values.map((_, index) => index + 1), ...roles.map(({ role }) => column(role))], options: {
    series: [{}, ...roles.map((one) => ({ stroke: () => colour(ink(one.role)), paths: () => null, points: point(one) }))],
    scales: { x: { time: false, range: () => [0.5, values.length + 0.5] } }, padding: [8, 16, 0, 0],
    axes: [axis({ values: (_, places) => places.map((place) => (Number.isInteger(place) ? place : null)), grid: { show: false }, size: 26 }),
      axis({ values: (_, places) => places.map((place) => `${digits(place)} ${shown.symbol}`.trim()), size: 64 })],
    hooks: { drawAxes: [(u) => known.forEach(({ role, own }) =>
      level(u, { from: 0.5, to: values.length + 0.5, value: median(own) * shown.factor }, ink(role), { dash: [6, 4], alpha: 0.8 }))] },
  } };
}

/** The median; of an even number the mean of the two in the middle. */
export function median(/** @type {number[]} */ values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(half)] : (sorted[half - 1] + sorted[half]) / 2;
}
