// SPDX-License-Identifier: Apache-2.0
/** The table of events: a row opens to its pictures and sentences, and to the series that show it. */
import { html } from "htm/preact";

import { EventCharts } from "./event.js";
import { commitLink, safeLink } from "./html.js";
import { writeState } from "./state.js";
import {
  boardsWords, boardWords, caseWords, count, interval, kindWords, lasting, metricWords, nightOf, nothingChanged, sign, signedPercent,
  stepWords, tone,
} from "./words.js";

const MOST_ROWS = 8;
const COLUMNS = ["Effect", "What", "Board", "Since", "Before → after", "Change", "Verdict"];
const NUMBERS = new Set(["Before → after", "Change"]);
const OF_RATIO = "; the change is that of the ratio to the reference firmware, measured in the same nights";

/** @param {{trend: Trend, state: State, update: Update}} props */
export function ChangeTable({ trend, state, update }) {
  const { events } = trend;
  const most = state.all ? events.length : Math.max(MOST_ROWS, (state.event ?? 0) + 1);
  return html`<section aria-labelledby="changes"><h2 id="changes">What changed</h2>
    ${!events.length ? html`<p class="soft">${nothingChanged(trend)}</p>` : html`<div class="scroll"><table class="changes">
      <caption class="unseen">What changed, the worst first; a row opens to the series that show it</caption>
      <thead><tr>${COLUMNS.map((name) => html`<th scope="col" class=${NUMBERS.has(name) ? "n" : undefined}>${name}</th>`)}</tr></thead>
      <tbody>${events.slice(0, most).map((event, index) => html`<${Rows} key=${index} ...${{ trend, state, event, index, update }} />`)}</tbody>
    </table></div>`}
    ${events.length > MOST_ROWS && html`<p><button type="button" class="plain"
      aria-expanded=${String(state.all)} onClick=${() => update({ all: !state.all })}>
      ${state.all ? `Show the first ${MOST_ROWS}` : `Show all ${events.length}`}</button></p>`}
  </section>`;
}

/** The row of an event, and where it is open what belongs to it. */
function Rows({ trend, state, event, index, update }) {
  const open = state.event === index;
  const series = event.series.map((number) => trend.series[number]).filter(Boolean);
  const change = series[0]?.changes.find((one) => one.event === index);
  const kinds = [...new Set(series.filter(({ mixed }) => mixed !== false).map((one) => kindWords(one)))].filter(Boolean).join("; ");
  return html`
    <tr id=${`event-${index}`} class=${`event tone-${tone(event)}${open ? " open" : ""}`}>
      <td class="effect"><span class="sign" aria-hidden="true">${sign(event)}</span> ${event.effect || "changed"}</td>
      <td><button type="button" class="plain" aria-expanded=${String(open)} aria-controls=${`event-${index}-more`}
        onClick=${() => update({ event: open ? null : index })}>${event.headline}</button></td>
      <td class="boards" title=${event.boards.join(", ")}>${boardsWords(event.boards)} <small>${kinds}</small></td>
      <td class="since">${event.night} <small class="lasting">${lasting(event)}</small> <${Commits} trend=${trend} event=${event} /></td>
      <td class="n">${(change && stepWords(series[0], change)) || "–"}</td>
      <td class="n"><b>${signedPercent(event.change) || "–"}</b> <small>${interval(event)}</small></td>
      <td>${event.cause}</td>
    </tr>
    ${open && html`<tr class="more" id=${`event-${index}-more`}><td colspan=${COLUMNS.length}>
      <${More} ...${{ trend, state, event, index, series, update }} /></td></tr>`}`;
}

/** "a1b2c3d..91bc1e2", each linked where the run's address tells where commits are to be seen. */
function Commits({ trend, event: { good, bad, run } }) {
  if (!bad) return "";
  const link = (commit) => {
    const address = commitLink({ url: trend.runs.url[run], commit });
    return address ? html`<a href=${address}>${commit.slice(0, 7)}</a>` : commit.slice(0, 7);
  };
  return html`<small class="commits">${good && html`${link(good)}..`}${link(bad)}</small>`;
}

function More({ trend, state, event, index, series, update }) {
  const { title = "", author = "", count: commits = 0, diff: address = "" } = event.commit ?? {};
  const diff = safeLink(address);
  const words = [title && `“${title}”`, author, commits > 0 && `${count(commits, "commit")} in the range`].filter(Boolean);
  return html`
    ${(words.length > 0 || diff) && html`<p><b>${words.join(", ")}</b>${diff && html` <a href=${diff}>the diff</a>`}</p>`}
    <${EventCharts} trend=${trend} index=${index} update=${update} />
    ${[event.sentence, ...event.conditions, event.note].filter(Boolean).map((line) => html`<p>${line}</p>`)}
    <p class="soft">Seen in ${count(event.nights, "night")}${event.of_ratio && OF_RATIO}.
      ${event.boards.length > 2 && ` Boards: ${event.boards.join(", ")}.`}</p>
    ${event.bisect && html`<p>To find the commit (docs/operate/bisect.md): <code>${event.bisect}</code></p>`}
    <details class="series-list"><summary>All ${series.length} series that show it</summary><ul class="series" aria-label="Series that show it">
      ${series.map((one) => html`<li key=${one.id}><${SeriesLink} ...${{ trend, state, event, index, series: one }} /></li>`)}</ul></details>`;
}

function SeriesLink({ trend, state, event, index, series }) {
  const change = series.changes.find((one) => one.event === index);
  const night = change ? nightOf(trend, series.points.run[change.position]) : "";
  const words = change ? [stepWords(series, change), night !== event.night && night].filter(Boolean).join(", ") : "";
  const name = `${caseWords(series)} · ${metricWords(series)} on ${boardWords(series)}`;
  return html`<a href=${writeState({ ...state, chart: trend.chartOf.get(series).key })}>${name}</a>
    <b>${change && ` ${signedPercent(change.change)}`}</b> <small>${words}</small>`;
}
