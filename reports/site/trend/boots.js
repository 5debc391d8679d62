// SPDX-License-Identifier: Apache-2.0
/** A statistic of each boot, in the order of measurement: does it drift, are the roles apart? */
import { html } from "htm/preact";
import { useState } from "preact/hooks";

import { roleWords } from "./details.js";
import { Frame, fromZero, makeAxis } from "./frame.js";
import { drawable } from "./points.js";
import { at } from "./scale.js";
import { quantity } from "./units.js";
import { boardAndKind } from "./words.js";

const HEIGHT = 300;
const LEAST_MARGIN = 0.02;
const PREFERRED = ["p99", "p95", "p90", "mean", "p50"];

/**
 * @param {{chart: import("./types.js").Chart, detail: import("./details.js").Detail, width?: number}} props
 */
export function BootsView({ chart, detail, width = 900 }) {
  const { boots, unit } = detail;
  const stats = boots ? Object.keys(boots.stats) : [];
  const [chosen, choose] = useState("");
  if (!boots || !boots.role.length || !stats.length) {
    return html`<p class="soft">The run that is reported kept no values of single boots of this figure.</p>`;
  }
  const stat = stats.includes(chosen) ? chosen : PREFERRED.find((each) => stats.includes(each)) ?? stats[0];
  const values = boots.stats[stat].map(drawable);
  const roles = [...new Set(boots.role)];
  return html`<div class="boots">
    ${stats.length > 1 && html`<p class="choices"><span role="group" aria-label="Statistic">${stats.map((each) => html`
      <button type="button" key=${each} aria-pressed=${String(each === stat)} onClick=${() => choose(each)}>${each}</button>`)}</span></p>`}
    <ul class="chart-legend">${roles.map((role) => html`<li class=${`role-${roleClass(role)}`}>
      <svg class="swatch" viewBox="0 0 14 12" width="14" height="12" aria-hidden="true"><path class="mark" d=${markPath(role, 7, 6)} /></svg>
      ${roleWords(role)} <span class="of">${medianWords(values, boots.role, role, unit)}</span></li>`)}</ul>
    <${Plot} ...${{ chart, boots, values, roles, stat, unit, width }} />
    <${Table} ...${{ boots, values, stat, unit }} />
  </div>`;
}

const roleClass = (/** @type {string} */ role) => (["candidate", "base", "reference"].includes(role) ? role : "other");

function medianWords(values, roles, role, unit) {
  const own = values.filter((value, index) => value !== null && roles[index] === role);
  const boots = `${own.length} boot${own.length === 1 ? "" : "s"}`;
  return own.length ? `median ${quantity(median(own), unit)} of ${boots}` : "no value";
}

/** The median; of an even number the mean of the two in the middle. */
export function median(/** @type {number[]} */ values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(half)] : (sorted[half - 1] + sorted[half]) / 2;
}

function Plot({ chart, boots, values, roles, stat, unit, width }) {
  const box = { width, height: HEIGHT, left: 58, right: width - 16, top: 16, bottom: HEIGHT - 34 };
  const ends = endsOf(values.filter((value) => value !== null), unit);
  const y = makeAxis({ ends, unit, range: [box.bottom, box.top], count: 4 });
  const gap = (box.right - box.left) / values.length;
  const x = (/** @type {number} */ index) => at(box.left + (index + 0.5) * gap);
  const label = `${chart.quantity} ${stat}`.trim();
  return html`<svg class="trend-chart" viewBox=${`0 0 ${width} ${HEIGHT}`} role="img">
    <title>${`${label} of each boot on ${boardAndKind(chart)}, in the order of measurement`}</title>
    <desc>${roles.map((role) => `${roleWords(role)}: ${medianWords(values, boots.role, role, unit)}`).join("; ")}</desc>
    <${Frame} chart=${chart} box=${box} y=${y}>
      ${roles.map((role) => html`<${Median} ...${{ role, values, boots, y, box }} />`)}
      ${values.map((value, index) => value !== null && html`<g class=${`role-${roleClass(boots.role[index])}`}>
        <title>${`${roleWords(boots.role[index])}, boot ${boots.index[index]}: ${quantity(value, unit)}`}</title>
        <path class="mark" d=${markPath(boots.role[index], x(index), y.to(value))} /></g>`)}
      <text class="m u" x=${at((box.left + box.right) / 2)} y=${box.bottom + 18}>
        boots in the order of measurement →${ends[0] > 0 ? " (the axis does not begin at zero)" : ""}</text>
    <//>
  </svg>`;
}

/** From zero, except where all values are so near to one another that no difference would be seen. */
function endsOf(values, unit) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!values.length || low <= high / 2) return fromZero(Math.max(0, high), unit);
  const margin = Math.max((high - low) / 4, high * LEAST_MARGIN);
  return [low - margin, high + margin];
}

function Median({ role, values, boots, y, box }) {
  const own = values.filter((value, index) => value !== null && boots.role[index] === role);
  return own.length > 0 && html`<path class=${`median role-${roleClass(role)}`} d=${`M${box.left} ${y.to(median(own))}H${box.right}`} />`;
}

/** Candidate: a disc. Base: a square. Reference: a triangle. So the three are told apart without colour. */
function markPath(role, x, y) {
  if (role === "candidate") return `M${at(x - 4)} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z`;
  if (role === "base") return `M${at(x - 3.5)} ${at(y - 3.5)}h7v7h-7z`;
  return `M${x} ${at(y - 4.5)}l4.5 8h-9z`;
}

function Table({ boots, values, stat, unit }) {
  return html`<details class="as-table"><summary>As a table</summary><div class="scroll" role="region" tabindex="0" aria-label="Boots"><table>
    <caption class="unseen">${stat} of each boot</caption>
    <thead><tr><th class="n">order</th><th>firmware</th><th class="n">boot</th><th class="n">${stat}</th></tr></thead>
    <tbody>${values.map((value, index) => html`<tr><td class="n">${index + 1}</td><td>${roleWords(boots.role[index])}</td>
      <td class="n">${boots.index[index]}</td><td class="n">${value === null ? "no value" : quantity(value, unit)}</td></tr>`)}</tbody>
  </table></div></details>`;
}
