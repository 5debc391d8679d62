// SPDX-License-Identifier: Apache-2.0
/** How the samples of the reported run are distributed: candidate over base or reference, shares below. */
import { html } from "htm/preact";

import { roleWords } from "./details.js";
import { Frame, makeAxis, room } from "./frame.js";
import { at } from "./scale.js";
import { digits, quantity } from "./units.js";
import { boardAndKind } from "./words.js";

const HEIGHTS = { histogram: 190, ecdf: 170 };
const LEFT = 58;

/**
 * @param {{chart: import("./types.js").Chart, detail: import("./details.js").Detail, width?: number}} props
 */
export function DistributionView({ chart, detail, width = 900 }) {
  const { distribution, unit } = detail;
  const total = distribution ? sum(distribution.candidate) : 0;
  if (!distribution || distribution.edges.length < 2 || !total) {
    return html`<p class="soft">The run that is reported kept no samples of this figure, only its statistics.</p>`;
  }
  const roles = rolesOf(distribution);
  const range = [LEFT, width - 16];
  const x = makeAxis({ ends: endsOf(distribution), unit, range, log: distribution.scale === "log", count: room(range[1] - range[0]) });
  const outside = distribution.limits.filter(({ value }) => value > x.ends[1] || value < x.ends[0]);
  return html`<div class="distribution">
    <ul class="chart-legend">${roles.map(({ role, name, samples }) => html`<li class=${`role-${role}`}>
      <svg class="swatch" viewBox="0 0 14 6" width="14" height="6" aria-hidden="true"><path d="M1 3h12" /></svg>
      ${name} <span class="of">${samples.toLocaleString("en-GB")} samples</span></li>`)}</ul>
    <${Histogram} ...${{ chart, distribution, roles, x, width }} />
    <${Shares} ...${{ chart, distribution, roles, x, width, unit }} />
    ${outside.map(({ stat, value }) => html`<p class="soft">The limit of ${stat || "this figure"}, ${quantity(value, unit)}, lies beyond what is drawn.</p>`)}
    ${roles.length === 1 && html`<p class="soft">No other firmware was measured in this run, so there is nothing to lay beside it.</p>`}
  </div>`;
}

/** Candidate last, so that it is drawn on top. */
function rolesOf({ candidate, other, role, candidate_samples: samples, other_samples: others }) {
  const own = { role: "candidate", name: "candidate", counts: candidate, samples };
  if (!other || !sum(other)) return [own];
  const name = role === "base" ? "base" : "reference";
  return [{ role: name, name: roleWords(name), counts: other, samples: others ?? sum(other) }, own];
}

const sum = (/** @type {number[]} */ counts) => counts.reduce((total, count) => total + count, 0);

/** From the first edge to the last; a logarithmic axis begins at the first edge above zero. */
function endsOf({ scale, edges }) {
  const first = scale === "log" ? edges.find((edge) => edge > 0) ?? edges[0] : edges[0];
  return [first, edges[edges.length - 1]];
}

/** Two outlines of steps, each as shares of its own samples, for the two may differ in number. */
function Histogram({ chart, distribution, roles, x, width }) {
  const box = { width, height: HEIGHTS.histogram, left: LEFT, right: width - 16, top: 18, bottom: HEIGHTS.histogram - 12 };
  const shares = roles.map(({ counts }) => counts.map((count) => count / (sum(counts) || 1)));
  const most = Math.max(...shares.flat());
  const y = makeAxis({ ends: [0, most * 1.06], unit: "ratio", range: [box.bottom, box.top], count: 3 });
  return html`<svg class="trend-chart" viewBox=${`0 0 ${width} ${box.height}`} role="img">
    <title>${`Samples of ${chart.quantity} on ${boardAndKind(chart)}: ${roles.map(({ name }) => name).join(" and ")}`}</title>
    <desc>${roles.map(({ name, counts }) => `${name}: most between ${modeWords(distribution.edges, counts, x)}`).join("; ")}</desc>
    <${Frame} chart=${chart} box=${box} y=${y}>
      ${shares.map((own, index) => html`<path class=${`steps role-${roles[index].role}`} d=${outline(distribution.edges, own, x, y, box)} />`)}
      <${LimitLines} limits=${distribution.limits} x=${x} box=${box} named />
    <//>
  </svg>`;
}

function modeWords(edges, counts, { unit }) {
  const mode = counts.indexOf(Math.max(...counts));
  const amount = (/** @type {number} */ value) => `${digits(value * unit.factor)} ${unit.symbol}`.trim();
  return `${amount(edges[mode])} and ${amount(edges[mode + 1])}`;
}

function outline(edges, shares, x, y, box) {
  const tops = shares.map((share, bin) => `V${y.to(share)}H${x.to(edges[bin + 1])}`);
  return `M${x.to(edges[0])} ${box.bottom}${tops.join("")}V${box.bottom}`;
}

/** What share of the samples took at most so much: a curve through the edges. */
function Shares({ chart, distribution, roles, x, width, unit }) {
  const box = { width, height: HEIGHTS.ecdf, left: LEFT, right: width - 16, top: 12, bottom: HEIGHTS.ecdf - 24 };
  const y = makeAxis({ ends: [0, 1], unit: "ratio", range: [box.bottom, box.top], count: 4 });
  const median = roles.map(({ name, counts }) => `${name}: half are at most ${quantity(shareAt(distribution.edges, counts, 0.5), unit)}`);
  return html`<svg class="trend-chart" viewBox=${`0 0 ${width} ${box.height}`} role="img">
    <title>${`Share of samples up to each ${chart.quantity} on ${boardAndKind(chart)}`}</title>
    <desc>${median.join("; ")}</desc>
    <${Frame} chart=${chart} box=${box} x=${x} y=${y}>
      ${roles.map(({ role, counts }) => html`<path class=${`ecdf role-${role}`} d=${curve(distribution.edges, counts, x, y)} />`)}
      <${LimitLines} limits=${distribution.limits} x=${x} box=${box} />
    <//>
  </svg>`;
}

function curve(edges, counts, x, y) {
  const all = sum(counts) || 1;
  let passed = 0;
  const steps = counts.map((count, bin) => {
    passed += count;
    return `L${x.to(edges[bin + 1])} ${y.to(passed / all)}`;
  });
  return `M${x.to(edges[0])} ${y.to(0)}${steps.join("")}`;
}

/** The upper edge of the bin in which `share` of the counts is reached. */
export function shareAt(/** @type {number[]} */ edges, /** @type {number[]} */ counts, /** @type {number} */ share) {
  const wanted = sum(counts) * share;
  let passed = 0;
  const bin = counts.findIndex((count) => (passed += count) >= wanted && passed > 0);
  return edges[bin < 0 ? edges.length - 1 : bin + 1];
}

/** Vertical lines; names are set apart in height where they would meet. */
function LimitLines({ limits, x, box, named = false }) {
  const inside = limits.filter(({ value }) => value >= x.ends[0] && value <= x.ends[1]);
  return html`<g class="limits">${inside.map(({ stat, value }, index) => {
    const place = x.to(value);
    const right = place > box.right - 90;
    return html`<path class="limit" d=${`M${place} ${box.top - (named ? 8 : 0)}V${box.bottom}`} />
      ${named && html`<text class=${right ? "limit-text e" : "limit-text"} x=${at(place + (right ? -4 : 4))}
        y=${box.top + index * 12}>${`limit ${stat}`.trim()}</text>`}`;
  })}</g>`;
}
