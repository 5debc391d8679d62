// SPDX-License-Identifier: Apache-2.0
/** The charts, in groups of bench and board. Only charts near the window are drawn; the others keep their place. */
import { html } from "htm/preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Legend, TrendChart } from "./chart.js";
import { hasFewRuns } from "./limits.js";
import { isWithin } from "./select.js";
import { isFiltered } from "./state.js";
import { boardWords, count, timeOf } from "./words.js";

const MOST_OPEN = 3; // at first; who looks for more has the table of changes and the filters
const NEAR = "800px"; // this far outside of the window a chart is drawn: a thousand canvases would be a gigabyte

/** @param {{trend: Trend, groups: Group[], state: State, update: Update}} props */
export function Groups({ trend, groups, state, update }) {
  const [turned, setTurned] = useState(/** @type {Record<string, boolean>} */ ({}));
  if (!groups.length) return html`<p class="soft">${trend.charts.length ? "No chart matches." : "No run has measured anything yet."}</p>`;
  const filtered = isFiltered(state);
  const firstPast = groups.find(({ measuredNow }) => !measuredNow);
  const nothing = !trend.charts.some(({ measuredNow }) => measuredNow);
  return html`${nothing && html`<p>The run that is reported measured nothing.</p>`}${groups.map((group, index) => {
    const name = `${filtered} ${group.key}`;
    const open = turned[name] ?? (filtered || (!hasFewRuns(trend) && opensAtFirst(group, index)));
    return html`${group === firstPast && html`<h2 class="soft" key="past">Not measured in this run</h2>`}
      <${GroupBox} key=${group.key} ...${{ id: `group-${index}`, trend, group, open, state, update }}
        toggle=${() => setTurned({ ...turned, [name]: !open })} />`;
  })}`;
}

/** The first group, and the next few in which something changed or broke. */
export const opensAtFirst = (/** @type {Pick<Group, "rank"|"measuredNow">} */ { rank, measuredNow }, /** @type {number} */ index) =>
  measuredNow && (index === 0 || (index < MOST_OPEN && (rank.broken || rank.changed !== "")));

function GroupBox({ id, trend, group, open, toggle, state, update }) {
  return html`<section class=${`group${group.measuredNow ? "" : " past"}`} aria-labelledby=${`${id}-name`}>
    <h3 id=${`${id}-name`}><button type="button" aria-expanded=${String(open)} aria-controls=${`${id}-body`} onClick=${toggle}>
      ${group.bench} on ${boardWords(group)} <${GroupNote} trend=${trend} group=${group} /></button></h3>
    <div id=${`${id}-body`} hidden=${!open}>${open && group.cases.map((charts) => html`<section class="case" key=${charts[0].case_id}>
      <h4>${charts[0].label || "defaults"}</h4>
      <div class="charts">${charts.map((chart) => html`<${Tile} key=${chart.key} ...${{ trend, chart, state, update }} />`)}</div>
    </section>`)}</div>
  </section>`;
}

/** What stands behind a group's name: product and rack where there are several, its air, and how it is. */
function GroupNote({ trend: { runs }, group: { charts, product, rack, profile, measuredNow } }) {
  const broken = charts.filter((chart) => chart.rank.broken).length;
  const changed = charts.filter((chart) => chart.rank.changed).length;
  const last = Math.max(-1, ...charts.flatMap(({ lines }) => lines.map(({ series: { points } }) =>
    points.run[points.value.findLastIndex((value) => value !== null)] ?? -1)));
  const parts = [
    product && (runs.product ?? []).some((other) => other !== product) && `product ${product}`,
    runs.rack.some((other) => other !== rack) && `rack ${rack}`,
    profile && `air ${profile}`, count(charts.length, "chart"), changed > 0 && `${changed} changed`,
    !measuredNow && last >= 0 && `last measured ${timeOf({ runs }, last)}`,
  ];
  return html`<span class="soft">${parts.filter(Boolean).join(" · ")}</span>${broken > 0 && html` <span class="bad">${broken} over a limit</span>`}`;
}

function Tile({ trend, chart, state: { stat, from, to }, update }) {
  const box = useRef(/** @type {any} */ (null));
  const [near, setNear] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => setNear(seen[seen.length - 1].isIntersecting), { rootMargin: NEAR });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const within = useMemo(() => isWithin(trend, { from, to }), [trend, from, to]);
  const measured = chart.lines.some(({ series }) => series.points.run.some(within));
  const open = () => update({ chart: chart.key });
  return html`<figure class=${`tile${chart.rank.broken || chart.rank.changed ? "" : " quiet"}`} ref=${box}>
    <figcaption><button type="button" class="plain" data-chart=${chart.key} onClick=${open}>${chart.quantity}</button>
      <small>${boardWords(chart)}</small></figcaption>
    ${!measured ? html`<p class="soft place">Not measured between these days.</p>` : !near ? html`<div class="place" aria-hidden="true"></div>`
      : html`<${Legend} chart=${chart} stats=${stat} />
        <${TrendChart} ...${{ trend, chart, stats: stat, within, onRun: open, onEvent: (event) => update({ event }) }} />`}
  </figure>`;
}
