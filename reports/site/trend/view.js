// SPDX-License-Identifier: Apache-2.0
/** The whole page. */
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { useAddress } from "./address.js";
import { ChangeTable } from "./changes.js";
import { Help } from "./dialog.js";
import { Drilldown } from "./drilldown.js";
import { Choice, Filters } from "./filters.js";
import { placeLink } from "./html.js";
import { actionOf, focusChart, focusClosed, focusFilter } from "./keyboard.js";
import { Limits } from "./limits.js";
import { repaint } from "./plot.js";
import { choicesOf, groupCharts, selectCharts } from "./select.js";
import { THEMES } from "./state.js";
import { Groups } from "./tiles.js";
import { scope, unreal } from "./words.js";

/** The page with its state in the address. @param {{trend: Trend}} props */
export function App({ trend }) {
  const [asked, update] = useAddress();
  const [help, setHelp] = useState(false);
  // an event of another report's address is left out
  const state = asked.event !== null && !trend.events[asked.event] ? { ...asked, event: null } : asked;
  const chart = trend.keys.get(state.chart);
  useTheme(state.theme);
  useKeys(help || Boolean(chart), () => setHelp(true));
  useFocusBack(chart?.key ?? "");
  useEffect(() => document.getElementById(`event-${state.event}`)?.scrollIntoView({ block: "nearest" }), [state.event]);
  return html`<${Page} ...${{ trend, state, update }} onHelp=${() => setHelp(true)} />
    ${chart && html`<${Drilldown} key=${chart.key} ...${{ trend, chart, state, update }} />`}
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}`;
}

/** Everything but dialogs. @param {{trend: Trend, state: State, update: Update, onHelp: () => void}} props */
export function Page({ trend, state, update, onHelp }) {
  const { text, product, board, rack, kind, target, bench, stat, changed, broken, from, to, event } = state;
  const shown = useMemo(() => selectCharts(trend, state),
    [trend, text, product, board, rack, kind, target, bench, stat.join(), changed, broken, from, to, event]);
  const groups = useMemo(() => groupCharts(shown), [shown]);
  const choices = useMemo(() => choicesOf(trend), [trend]);
  return html`<${Header} ...${{ trend, theme: state.theme, update, onHelp }} />
    <main>
      <${ChangeTable} ...${{ trend, state, update }} />
      <${Limits} ...${{ trend, state, update }} />
      <section aria-labelledby="series"><h2 id="series">Every series</h2>
        <${Filters} ...${{ trend, state, shown: shown.length, choices, update }} />
        <${Groups} ...${{ trend, groups, state, update }} /></section>
    </main>`;
}

/** Ways to the other pages, what this one is about, and how it looks. */
function Header({ trend, theme, update, onHelp }) {
  const { links, title, notes, remark, dropped_runs: dropped } = trend;
  const kinds = unreal(trend);
  const ways = [[links.home, "← Verdict"], [links.tests, "Test report"]].filter(([address]) => placeLink(address ?? ""));
  const said = remark || (kinds.length ? `Among the figures are ${kinds.join(", ")} ones: they are not those of a chip.` : "");
  return html`<header>
    <div class="top"><nav aria-label="Report">${ways.map(([address, name]) => html`<a href=${address}>${name}</a>`)}</nav>
      <${Choice} name="Theme" options=${THEMES} value=${theme} all="" onChange=${(value) => update({ theme: value })} />
      <button type="button" class="plain" onClick=${onHelp} aria-haspopup="dialog" aria-keyshortcuts="?">Keys <kbd>?</kbd></button></div>
    <h1>Trend · ${title} ${kinds.filter((word) => !title.includes(`${word} figures`)).map((word) => html`<span class="badge">${word}</span> `)}</h1>
    <p class="soft">${scope(trend)}${dropped > 0 && `; ${dropped} older runs are not drawn`}</p>
    ${[said, ...notes].filter(Boolean).map((note) => html`<p class="remark">${note}</p>`)}
  </header>`;
}

function useTheme(/** @type {string} */ theme) {
  const first = useRef(true);
  useLayoutEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    if (!first.current) repaint();
    first.current = false;
  }, [theme]);
}

function useKeys(/** @type {boolean} */ covered, /** @type {() => void} */ help) {
  useEffect(() => {
    const act = { filter: focusFilter, next: () => focusChart(1), previous: () => focusChart(-1), help };
    const press = (/** @type {KeyboardEvent} */ event) => {
      const action = event.defaultPrevented ? "" : actionOf(event, covered);
      if (!action) return;
      event.preventDefault();
      act[action]();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

/** A chart that the address opened leaves the focus on its own button. */
function useFocusBack(/** @type {string} */ key) {
  const was = useRef("");
  useEffect(() => {
    if (!key && was.current) focusClosed(was.current);
    was.current = key;
  }, [key]);
}
