// SPDX-License-Identifier: Apache-2.0
/**
 * What is to be seen: text, board, rack, kind, chip, bench, statistics, what changed or broke, and from when
 * to when.
 */
import { html } from "htm/preact";

import { count } from "./facts.js";
import { STATISTICS } from "./model.js";
import { choicesOf } from "./select.js";
import { EMPTY, isFiltered } from "./state.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").State} State */
/** @typedef {(changes: Partial<State>, options?: {replace?: boolean}) => void} Update */

/** The id of the text field; "/" goes there. */
export const FIELD = "filter-text";
const NAMES = { product: "Product", board: "Board", rack: "Rack", kind: "Kind", target: "Chip", bench: "Bench" };

/**
 * @param {{trend: Trend, state: State, shown: number, choices: ReturnType<typeof choicesOf>, update: Update}}
 * props
 */
export function Filters({ trend, state, shown, choices, update }) {
  const ranged = Boolean(state.from || state.to);
  const everything = () => update({ ...EMPTY, theme: state.theme, all: state.all });
  return html`<form class="filter" role="search" aria-label="Charts" onSubmit=${(event) => event.preventDefault()}>
    <input type="search" id=${FIELD} aria-label="Filter by text" aria-keyshortcuts="/" placeholder="Filter: transport=tls latency"
      value=${state.text} onInput=${({ target }) => update({ text: target.value }, { replace: true })} />
    ${Object.entries(NAMES).map(([id, name]) => html`<${Choice} key=${id} id=${id} name=${name}
      options=${choices[id]} value=${state[id]} update=${update} />`)}
    <${Statistics} trend=${trend} chosen=${state.stat} update=${update} />
    <${Tick} name="changed only" checked=${state.changed} onChange=${(changed) => update({ changed })} />
    <${Tick} name="limit broken" checked=${state.broken} onChange=${(broken) => update({ broken })} />
    <${Day} name="From" value=${state.from} onChange=${(from) => update({ from })} />
    <${Day} name="to" value=${state.to} onChange=${(to) => update({ to })} />
    <span class="shown" role="status" aria-live="polite">${shownWords(trend, shown)}</span>
    ${(isFiltered(state) || ranged) && html`<button type="button" onClick=${everything}>Show everything</button>`}
  </form>
  ${state.event !== null && html`<p class="chosen">Charts of: <b>${trend.events[state.event].headline}</b>
    <button type="button" class="plain" onClick=${() => update({ event: null })}>all charts</button></p>`}`;
}

/** "12 of 320 charts". */
export function shownWords(/** @type {Trend} */ { charts }, /** @type {number} */ shown) {
  return shown === charts.length ? count(shown, "chart") : `${shown} of ${count(charts.length, "chart")}`;
}

/** A list to choose from; none where there is no choice and nothing was chosen. */
function Choice({ id, name, options, value, update }) {
  if (options.length < 2 && !value) return "";
  const known = !value || options.includes(value) ? options : [...options, value];
  return html`<label>${name} <select value=${value} onChange=${({ target }) => update({ [id]: target.value })}>
    <option value="">all</option>${known.map((option) => html`<option value=${option} selected=${option === value}>${option}</option>`)}
  </select></label>`;
}

function Statistics({ trend, chosen, update }) {
  const found = STATISTICS.filter((stat) => stat && trend.series.some((series) => series.stat === stat));
  if (found.length < 2) return "";
  const toggle = (stat) => update({ stat: STATISTICS.filter((each) => (each === stat) !== chosen.includes(each)) });
  return html`<fieldset class="stats"><legend class="unseen">Statistics that are drawn</legend>
    ${found.map((stat) => html`<button type="button" aria-pressed=${String(chosen.includes(stat))}
      onClick=${() => toggle(stat)}>${stat}</button>`)}</fieldset>`;
}

function Tick({ name, checked, onChange }) {
  return html`<label><input type="checkbox" checked=${checked} onChange=${({ target }) => onChange(target.checked)} /> ${name}</label>`;
}

function Day({ name, value, onChange }) {
  return html`<label>${name} <input type="date" value=${value} onChange=${({ target }) => onChange(target.value)} /></label>`;
}
