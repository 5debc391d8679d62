// SPDX-License-Identifier: Apache-2.0
/** The charts: in groups of bench and board, each case with its quantities side by side. */
import { html } from "htm/preact";
import { useState } from "preact/hooks";

import { count } from "./facts.js";
import { hasFewRuns } from "./few.js";
import { LazyChart } from "./lazy.js";
import { boardWords } from "./words.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").State} State */
/** @typedef {import("./select.js").Group} Group */

const MOST_OPEN = 3; // at first; who looks for more has the table of changes and the filters

/**
 * @param {{trend: Trend, groups: Group[], state: State, filtered: boolean, update: (changes: Partial<State>)
 * => void}} props
 */
export function Groups({ trend, groups, state, filtered, update }) {
  const [turned, setTurned] = useState(/** @type {Record<string, boolean>} */ ({}));
  if (!groups.length) return html`<p class="soft">${trend.charts.length ? "No chart matches." : "No run has measured anything yet."}</p>`;
  const firstPast = groups.find(({ measuredNow }) => !measuredNow);
  const few = hasFewRuns(trend);
  const nothing = !trend.charts.some(({ measuredNow }) => measuredNow);
  return html`${nothing && html`<p>The run that is reported measured nothing.</p>`}${groups.map((group, index) => {
    const open = turned[`${filtered} ${group.key}`] ?? (filtered || (!few && opensAtFirst(group, index)));
    const toggle = () => setTurned({ ...turned, [`${filtered} ${group.key}`]: !open });
    return html`${group === firstPast && html`<h2 class="soft" key="past">Not measured in this run</h2>`}
      <${GroupBox} key=${group.key} id=${`group-${index}`} trend=${trend} group=${group}
        open=${open} toggle=${toggle} state=${state} update=${update} />`;
  })}`;
}

/** The first group, and the next few in which something changed or broke. */
export const opensAtFirst = (/** @type {Group} */ { rank, measuredNow }, /** @type {number} */ index) =>
  measuredNow && (index === 0 || (index < MOST_OPEN && (rank.broken || rank.changed !== "")));

function GroupBox({ id, trend, group, open, toggle, state, update }) {
  return html`<section class=${`group${group.measuredNow ? "" : " past"}`} aria-labelledby=${`${id}-name`}>
    <h3 id=${`${id}-name`}><button type="button" aria-expanded=${String(open)} aria-controls=${`${id}-body`} onClick=${toggle}>
      ${group.bench} on ${boardWords(group)} <${GroupNote} trend=${trend} group=${group} /></button></h3>
    <div id=${`${id}-body`} hidden=${!open}>${open && group.cases.map((item) => html`<section class="case" key=${item.case_id}>
      <h4>${item.label || "defaults"}</h4>
      <div class="charts">${item.charts.map((chart) => html`<${LazyChart} key=${chart.key} trend=${trend} chart=${chart} stats=${state.stat}
        from=${state.from} to=${state.to} update=${update} />`)}</div>
    </section>`)}</div>
  </section>`;
}

/** What stands behind a group's name: its product and its rack where there are several, its air, and how it is. */
function GroupNote({ trend, group }) {
  const charts = group.cases.flatMap((item) => item.charts);
  const broken = charts.filter(({ rank }) => rank.broken).length;
  const changed = charts.filter(({ rank }) => rank.changed).length;
  const products = trend.runs.product ?? [];
  const where = [
    group.product && products.some((product) => product !== group.product) ? `product ${group.product}` : "",
    trend.runs.rack.some((rack) => rack !== group.rack) ? `rack ${group.rack}` : "", group.profile ? `air ${group.profile}` : "",
    count(group.charts, "chart"), changed ? `${changed} changed` : "",
    group.measuredNow ? "" : lastMeasured(trend, charts),
  ];
  return html`<span class="soft">${where.filter(Boolean).join(" · ")}</span>${broken > 0 && html` <span class="bad">${broken} over a limit</span>`}`;
}

/** "last measured 2026-11-20 01:15". */
function lastMeasured(trend, charts) {
  const newest = (points) => points.run[points.value.findLastIndex((value) => value !== null)] ?? -1;
  const run = Math.max(...charts.flatMap(({ lines }) => lines.map(({ series }) => newest(series.points))));
  return run < 0 ? "" : `last measured ${trend.runs.started_utc[run].slice(0, 16).replace("T", " ")}`;
}
