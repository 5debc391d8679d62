// SPDX-License-Identifier: Apache-2.0
/** The whole page. */
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { useAddress } from "./address.js";
import { ChangeTable } from "./changes.js";
import { Drilldown } from "./drilldown.js";
import { LimitBars, hasFewRuns } from "./few.js";
import { Filters } from "./filters.js";
import { Groups } from "./groups.js";
import { Header } from "./header.js";
import { Help } from "./help.js";
import { actionOf, focusChart, focusFilter, giveBack } from "./keyboard.js";
import { BrokenLimits, NearestLimits } from "./limits.js";
import { byKey } from "./model.js";
import { choicesOf, groupCharts, selectCharts } from "./select.js";
import { isFiltered } from "./state.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").State} State */
/** @typedef {(changes: Partial<State>, options?: {replace?: boolean}) => void} Update */

/** The page with its state in the address. @param {{trend: Trend}} props */
export function App({ trend }) {
  const [asked, update] = useAddress();
  const [help, setHelp] = useState(false);
  const state = settle(trend, asked);
  const chart = byKey(trend, state.chart);
  const before = useRef(/** @type {Element|null} */ (null));
  const close = () => update({ chart: "", tab: "runs" });
  useTheme(state.theme);
  useKeys({ covered: help || Boolean(chart), help, setHelp, close: chart && close });
  useFocus(before, help ? "help" : chart?.key ?? "", chart?.key ?? "");
  useScroll(state.event);
  return html`
    <div inert=${help || Boolean(chart)}><${Page} trend=${trend} state=${state} update=${update} onHelp=${() => setHelp(true)} /></div>
    ${chart && html`<${Drilldown} key=${chart.key} trend=${trend} chart=${chart} tab=${state.tab}
      onTab=${(tab) => update({ tab }, { replace: true })} onClose=${close} />`}
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}`;
}

/**
 * Everything but dialogs, of its props alone.
 *
 * @param {{trend: Trend, state: State, update: Update, onHelp: () => void}} props
 */
export function Page({ trend, state, update, onHelp }) {
  const { text, product, board, rack, kind, target, bench, stat, changed, broken, from, to, event } = state;
  const shown = useMemo(() => selectCharts(trend, state),
    [trend, text, product, board, rack, kind, target, bench, stat.join(), changed, broken, from, to, event]);
  const groups = useMemo(() => groupCharts(shown), [shown]);
  const choices = useMemo(() => choicesOf(trend), [trend]);
  return html`
    <${Header} trend=${trend} theme=${state.theme} update=${update} onHelp=${onHelp} />
    <main>
      <${ChangeTable} trend=${trend} state=${state} update=${update} />
      <${BrokenLimits} trend=${trend} state=${state} update=${update} />
      ${hasFewRuns(trend) ? html`<${LimitBars} trend=${trend} state=${state} />` : html`<${NearestLimits} trend=${trend} state=${state} />`}
      <section aria-labelledby="series"><h2 id="series">Every series</h2>
        <${Filters} trend=${trend} state=${state} shown=${shown.length} choices=${choices} update=${update} />
        <${Groups} trend=${trend} groups=${groups} state=${state} filtered=${isFiltered(state)} update=${update} />
      </section>
    </main>`;
}

/** The state without what this report does not have: an event of another report's address. */
function settle(/** @type {Trend} */ trend, /** @type {State} */ state) {
  return state.event !== null && !trend.events[state.event] ? { ...state, event: null } : state;
}

function useTheme(theme) {
  useLayoutEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
}

function useKeys({ covered, help, setHelp, close }) {
  useEffect(() => {
    const act = {
      filter: focusFilter, next: () => focusChart(1), previous: () => focusChart(-1), help: () => setHelp(true),
      close: () => (help ? setHelp(false) : close?.()),
    };
    const press = (event) => {
      const action = event.defaultPrevented ? "" : actionOf(event, covered);
      if (!action) return;
      if (action !== "close" || covered) event.preventDefault();
      act[action]();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

/** Remember what had the focus when a dialog opened, and give it back when it is closed. */
function useFocus(before, dialog, key) {
  const was = useRef({ dialog: "", key: "" });
  if (dialog && !was.current.dialog) before.current = typeof document === "undefined" ? null : document.activeElement;
  useEffect(() => {
    if (!dialog && was.current.dialog) giveBack(before.current, was.current.key);
    was.current = { dialog, key: key || was.current.key };
  }, [dialog, key]);
}

/** An event that the address names is brought into view. */
function useScroll(event) {
  useEffect(() => {
    if (event !== null) document.getElementById(`event-${event}`)?.scrollIntoView({ block: "nearest" });
  }, [event]);
}
