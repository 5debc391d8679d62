// SPDX-License-Identifier: Apache-2.0
/** What is to be seen: text, board, rack, kind, chip, bench, statistics, what changed or broke, and from when to when. */
import { html } from "htm/preact";

import { STATISTICS } from "./model.js";
import { EMPTY, isFiltered } from "./state.js";
import { count } from "./words.js";

/** The id of the text field; "/" goes there. */
export const FIELD = "filter-text";
const NAMES = { product: "Product", board: "Board", rack: "Rack", kind: "Kind", target: "Chip", bench: "Bench" };

/** @param {{trend: Trend, state: State, shown: number, choices: Record<string, string[]>, update: Update}} props */
export function Filters({ trend, state, shown, choices, update }) {
  const all = trend.charts.length;
  const tick = (name, key) => html`<label><input type="checkbox" checked=${state[key]}
    onChange=${({ target }) => update({ [key]: target.checked })} /> ${name}</label>`;
  const day = (name, key) => html`<label>${name} <input type="date" value=${state[key]}
    onChange=${({ target }) => update({ [key]: target.value })} /></label>`;
  return html`<form class="filter" role="search" aria-label="Charts" onSubmit=${(event) => event.preventDefault()}>
    <input type="search" id=${FIELD} aria-label="Filter by text" aria-keyshortcuts="/" placeholder="Filter: transport=tls latency"
      value=${state.text} onInput=${({ target }) => update({ text: target.value }, { replace: true })} />
    ${Object.entries(NAMES).map(([id, name]) => html`<${Choice} key=${id} name=${name} options=${choices[id]} value=${state[id]}
      onChange=${(value) => update({ [id]: value })} />`)}
    <${Statistics} series=${trend.series} chosen=${state.stat} update=${update} />
    ${tick("changed only", "changed")} ${tick("limit broken", "broken")} ${day("From", "from")} ${day("to", "to")}
    <span class="shown" role="status" aria-live="polite">${shown === all ? count(all, "chart") : `${shown} of ${count(all, "chart")}`}</span>
    ${(isFiltered(state) || state.from || state.to) && html`<button type="button"
      onClick=${() => update({ ...EMPTY, theme: state.theme, all: state.all })}>Show everything</button>`}
  </form>
  ${state.event !== null && html`<p class="chosen">Charts of: <b>${trend.events[state.event].headline}</b>
    <button type="button" class="plain" onClick=${() => update({ event: null })}>all charts</button></p>`}`;
}

/** A list to choose from; none where there is no choice and nothing was chosen. */
export function Choice({ name, options, value, onChange, all = "all" }) {
  if (options.length < 2 && !value) return "";
  const known = !value || options.includes(value) ? options : [...options, value];
  return html`<label>${name} <select value=${value} onChange=${({ target }) => onChange(target.value)}>
    ${all && html`<option value="">${all}</option>`}
    ${known.map((option) => html`<option value=${option} selected=${option === value}>${option}</option>`)}
  </select></label>`;
}

/** The statistics that are drawn; all where none is chosen. */
export function Statistics({ series, chosen, update }) {
  const found = STATISTICS.filter((stat) => stat && series.some((one) => one.stat === stat));
  if (found.length < 2) return "";
  const toggle = (stat) => update({ stat: STATISTICS.filter((each) => (each === stat) !== chosen.includes(each)) });
  return html`<fieldset class="stats"><legend class="unseen">Statistics that are drawn</legend>
    ${found.map((stat) => html`<button type="button" aria-pressed=${String(chosen.includes(stat))}
      onClick=${() => toggle(stat)}>${stat}</button>`)}</fieldset>`;
}
