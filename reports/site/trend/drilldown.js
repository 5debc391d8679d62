// SPDX-License-Identifier: Apache-2.0
/** One chart in depth: a dialog with tabs, and links to the test and the files behind the figures. */
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { BootsView } from "./boots.js";
import { detailOf, detailRun, placeLink, whyNoDetail } from "./details.js";
import { DistributionView } from "./distribution.js";
import { OverTime } from "./overtime.js";
import { SamplesView } from "./samples.js";
import { WireView } from "./wire.js";
import { boardAndKind } from "./words.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").Chart} Chart */

const TABS = [
  ["runs", "Over time"], ["distribution", "Distribution"], ["boots", "Boot by boot"], ["samples", "Samples"], ["wire", "On the wire"],
];
const VIEWS = { distribution: DistributionView, boots: BootsView, samples: SamplesView, wire: WireView };
const FOCUSABLE = "a[href], button:not([disabled]), input, select, summary, [tabindex='0']";

/**
 * Escape and giving the focus back are the page's.
 *
 * @param {{trend: Trend, chart: Chart, tab?: string, onTab: (tab: string) => void,
 *          onClose: () => void}} props
 *   tab: "runs", "distribution", "boots", "samples" or "wire"
 */
export function Drilldown({ trend, chart, tab = "runs", onTab, onClose }) {
  const dialog = useRef(/** @type {any} */ (null));
  const [width, panel] = useWidth(dialog);
  useEffect(() => dialog.current?.focus(), [chart.key]);
  const open = TABS.some(([name]) => name === tab) ? tab : "runs";
  const context = [chart.bench, chart.label, chart.target, chart.profile && `air ${chart.profile}`].filter(Boolean).join(" · ");
  return html`<div class="drill-back" onClick=${(/** @type {any} */ event) => event.target === event.currentTarget && onClose()}>
    <section class="drill" role="dialog" aria-modal="true" aria-labelledby="drill-title" tabindex="-1" ref=${dialog}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => keepFocus(event, dialog.current)}>
      <header><div><h2 id="drill-title">${chart.quantity} <span class="soft">on</span> ${boardAndKind(chart)}</h2>
        <p class="soft">${context}</p></div>
        <button type="button" class="close" aria-label="Close" onClick=${onClose}>✕</button></header>
      <${Tabs} open=${open} onTab=${onTab} />
      <div class="drill-panel" id="drill-panel" role="tabpanel" aria-labelledby=${`drill-tab-${open}`} ref=${panel}>
        <${Panel} key=${`${chart.key} ${open}`} ...${{ trend, chart, tab: open, width }} />
      </div>
      <${Links} trend=${trend} chart=${chart} />
    </section>
  </div>`;
}

/** Left and right go to the neighbouring tab; only the open one is reached with Tab. */
function Tabs({ open, onTab }) {
  const step = (/** @type {KeyboardEvent} */ event) => {
    const names = TABS.map(([name]) => name);
    const from = names.indexOf(open);
    const places = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: names.length - 1 };
    if (!(event.key in places)) return;
    event.preventDefault();
    event.stopPropagation();
    const next = names[(places[event.key] + names.length) % names.length];
    onTab(next);
    /** @type {any} */ (event.currentTarget).querySelector(`#drill-tab-${next}`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label="What to see" onKeyDown=${step}>${TABS.map(([name, text]) => html`
    <button type="button" role="tab" id=${`drill-tab-${name}`} key=${name} aria-selected=${String(name === open)} aria-controls="drill-panel"
      tabindex=${name === open ? 0 : -1} onClick=${() => onTab(name)}>${text}</button>`)}</div>`;
}

function Panel({ trend, chart, tab, width }) {
  if (tab === "runs") return html`<${OverTime} trend=${trend} chart=${chart} width=${width} />`;
  const detail = detailOf(trend, chart);
  if (!detail) return html`<p class="soft">${whyNoDetail(trend, chart)}</p>`;
  return html`<p class="soft">${sentence(detailRun(trend, detail))}</p><${VIEWS[tab]} chart=${chart} detail=${detail} width=${width} />`;
}

const sentence = (/** @type {string} */ text) => text && `${text[0].toUpperCase()}${text.slice(1)}`;

/** The test in the test report, and the files of the run. */
function Links({ trend, chart }) {
  const detail = detailOf(trend, chart);
  const test = detail?.test || chart.lines.find(({ series }) => series.test)?.series.test;
  const address = placeLink(trend.links?.tests ?? "");
  const files = (detail?.files ?? []).filter(({ href }) => placeLink(href));
  if (!(test && address) && !files.length) return null;
  const place = test && address ? `${address}#${encodeURIComponent(test)}` : "";
  const named = files.some(({ href }) => href === place);
  return html`<footer>${place && !named && html`<a href=${place}>Test in the test report</a>`}
    ${files.map(({ text, href }) => html`<a href=${placeLink(href)}>${text}</a>`)}</footer>`;
}

/** Tab stays in the dialog: after the last element comes the first. */
function keepFocus(event, dialog) {
  if (event.key !== "Tab" || !dialog) return;
  const all = [...dialog.querySelectorAll(FOCUSABLE)].filter((each) => each.tabIndex >= 0 && each.getClientRects().length);
  const [first, last] = [all[0], all[all.length - 1]];
  const active = dialog.ownerDocument.activeElement;
  if (event.shiftKey && (active === first || active === dialog)) { event.preventDefault(); last?.focus(); }
  else if (!event.shiftKey && active === last) { event.preventDefault(); first?.focus(); }
}

/** The width of the panel in pixels, kept up to date; 900 until it is known. */
function useWidth(dialog) {
  const panel = useRef(/** @type {any} */ (null));
  const [width, setWidth] = useState(900);
  useLayoutEffect(() => {
    if (!panel.current || typeof ResizeObserver === "undefined") return undefined;
    const style = getComputedStyle(panel.current);
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    const observer = new ResizeObserver(() => setWidth(Math.max(240, Math.round(panel.current.clientWidth - padding))));
    observer.observe(panel.current);
    return () => observer.disconnect();
  }, [dialog]);
  return [width, panel];
}
