// SPDX-License-Identifier: Apache-2.0
/**
 * The table of what happened: one row an event; a row opens to its series, and each of those leads to its
 * chart.
 */
import { html } from "htm/preact";

import { EventCharts } from "./event.js";
import { beforeAfter, boardsWords, caseWords, count, interval, kindsOf, lasting, nightOf, nothingChanged, sign, stepWords, tone } from "./facts.js";
import { commitLink, safeLink } from "./html.js";
import { writeState } from "./state.js";
import { boardWords, signedPercent } from "./words.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").State} State */
/** @typedef {(changes: Partial<State>) => void} Update */

const MOST_ROWS = 8;
const COLUMNS = ["Effect", "What", "Board", "Since", "Before → after", "Change", "Verdict"];
const OF_RATIO = "; the change is that of the ratio to the reference firmware, measured in the same nights";
const NUMBERS = new Set(["Before → after", "Change"]);

/** @param {{trend: Trend, state: State, update: Update}} props */
export function ChangeTable({ trend, state, update }) {
  const { events } = trend;
  if (!events.length) {
    return html`<section aria-labelledby="changes"><h2 id="changes">What changed</h2>
      <p class="soft">${nothingChanged(trend)}</p></section>`;
  }
  const most = state.all ? events.length : Math.max(MOST_ROWS, (state.event ?? 0) + 1);
  const more = events.length - MOST_ROWS;
  return html`<section aria-labelledby="changes">
    <h2 id="changes">What changed</h2>
    <div class="scroll"><table class="changes">
      <caption class="unseen">What changed, the worst first; a row opens to the series that show it</caption>
      <thead><tr>${COLUMNS.map((name) => html`<th scope="col" class=${NUMBERS.has(name) ? "n" : undefined}>${name}</th>`)}</tr></thead>
      <tbody>${events.slice(0, most).map((_, index) => html`<${Rows} key=${index} index=${index}
        trend=${trend} state=${state} update=${update} />`)}</tbody>
    </table></div>
    ${more > 0 && html`<p><button type="button" class="plain" aria-expanded=${String(state.all)} onClick=${() => update({ all: !state.all })}>
      ${state.all ? `Show the first ${MOST_ROWS}` : `Show all ${events.length}`}</button></p>`}
  </section>`;
}

/** An event's row, and where it is open what belongs to it. */
function Rows({ trend, state, index, update }) {
  const event = trend.events[index];
  const open = state.event === index;
  const toggle = () => update({ event: open ? null : index });
  return html`
    <tr id=${`event-${index}`} class=${`event tone-${tone(event)}${open ? " open" : ""}`}>
      <td class="effect"><span class="sign" aria-hidden="true">${sign(event)}</span> ${event.effect || "changed"}</td>
      <td><button type="button" class="plain" aria-expanded=${String(open)} aria-controls=${`event-${index}-more`}
        onClick=${toggle}>${event.headline}</button></td>
      <td class="boards" title=${event.boards.join(", ")}>${boardsWords(event.boards)} <small>${kindsOf(trend, index)}</small></td>
      <td class="since">${event.night} <small class="lasting">${lasting(event)}</small> <${Commits} trend=${trend} event=${event} /></td>
      <td class="n">${beforeAfter(trend, index) || "–"}</td>
      <td class="n"><b>${signedPercent(event.change) || "–"}</b> <small>${interval(event)}</small></td>
      <td>${event.cause}</td>
    </tr>
    ${open && html`<tr class="more" id=${`event-${index}-more`}>
      <td colspan=${COLUMNS.length}><${More} trend=${trend} state=${state} index=${index} update=${update} /></td></tr>`}`;
}

/** "a1b2c3d..91bc1e2", each linked where the run's address tells where commits are to be seen. */
function Commits({ trend, event: { good, bad, run } }) {
  if (!bad) return "";
  const link = (commit) => {
    const address = commitLink({ url: trend.runs.url[run], commit });
    const short = commit.slice(0, 7);
    return address ? html`<a href=${address}>${short}</a>` : short;
  };
  return html`<small class="commits">${good && html`${link(good)}..`}${link(bad)}</small>`;
}

function More({ trend, state, index, update }) {
  const event = trend.events[index];
  const lines = [event.sentence, ...event.conditions, event.note].filter(Boolean);
  return html`
    <${Commit} event=${event} />
    <${EventCharts} trend=${trend} index=${index} update=${update} />
    ${lines.map((line) => html`<p>${line}</p>`)}
    <p class="soft">Seen in ${count(event.nights, "night")}${event.of_ratio && OF_RATIO}.
      ${event.boards.length > 2 && ` Boards: ${event.boards.join(", ")}.`}</p>
    ${event.bisect && html`<p>To find the commit (docs/operate/bisect.md): <code>${event.bisect}</code></p>`}
    <${SeriesList} trend=${trend} state=${state} index=${index} />`;
}

/** Title and author of the commit that it began with, how many lie in the range, and the way to their diff. */
function Commit({ event: { commit } }) {
  if (!commit || !(commit.title || commit.count || commit.diff)) return "";
  const diff = safeLink(commit.diff);
  const words = [commit.title && `“${commit.title}”`, commit.author, commit.count > 0 && `${count(commit.count, "commit")} in the range`];
  return html`<p><b>${words.filter(Boolean).join(", ")}</b>${diff && html` <a href=${diff}>the diff</a>`}</p>`;
}

function SeriesList({ trend, state, index }) {
  const found = trend.events[index].series.map((number) => trend.series[number]).filter(Boolean);
  return html`<details class="series-list"><summary>All ${found.length} series that show it</summary>
    <ul class="series" aria-label="Series that show it">
    ${found.map((item) => html`<li key=${item.id}><${SeriesLink} trend=${trend} state=${state} index=${index} series=${item} /></li>`)}
  </ul></details>`;
}

function SeriesLink({ trend, state, index, series }) {
  const chart = trend.chartOf.get(series);
  const change = series.changes.find(({ event }) => event === index);
  const name = `${caseWords(series)} · ${`${series.quantity} ${series.stat}`.trim()} on ${boardWords(series)}`;
  const step = change ? ` ${signedPercent(change.change)}` : "";
  const when = change ? nightOf(trend, series.points.run[change.position]) : "";
  const words = change ? [stepWords(series, change), when === trend.events[index].night ? "" : when].filter(Boolean).join(", ") : "";
  return html`<a href=${writeState({ ...state, chart: chart.key, tab: "runs" })}>${name}</a><b>${step}</b> <small>${words}</small>`;
}
