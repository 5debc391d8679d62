// SPDX-License-Identifier: Apache-2.0
/**
 * A chart that is drawn when it comes near the window; until then its place is kept, so that nothing jumps.
 */
import { html } from "htm/preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Legend, TrendChart } from "./chart.js";
import { within } from "./range.js";
import { boardWords } from "./words.js";

const NEAR = "400px"; // this far outside of the window a chart is drawn
const WIDTH = 380;

/** @type {Map<Element, () => void>} */
const waiting = new Map();
/** @type {IntersectionObserver|undefined} */
let observer;

/**
 * @param {{trend: import("./types.js").Trend, chart: import("./types.js").Chart, stats: string[], from:
 *   string, to: string,
 *          update: (changes: Partial<import("./types.js").State>) => void}} props
 */
export function LazyChart({ trend, chart, stats, from, to, update }) {
  const box = useRef(/** @type {Element|null} */ (null));
  const [near, setNear] = useState(false);
  useEffect(() => (near || !box.current ? undefined : whenNear(box.current, () => setNear(true))), [near]);
  const open = () => update({ chart: chart.key, tab: "runs" });
  const drawn = useMemo(() => near && html`<${Drawn} trend=${trend} chart=${within(trend.runs, chart, { from, to })} stats=${stats}
    onRun=${open} onEvent=${(event) => update({ event })} />`, [near, chart, from, to, stats.join()]);
  const quiet = chart.rank.broken || chart.rank.changed ? "" : " quiet";
  return html`<figure class=${`tile${quiet}`} ref=${box}>
    <figcaption><button type="button" class="plain" data-chart=${chart.key} onClick=${open}>${chart.quantity}</button>
      <small>${boardWords(chart)}</small></figcaption>
    ${drawn || html`<div class="place" aria-hidden="true"></div>`}
  </figure>`;
}

function Drawn({ trend, chart, stats, onRun, onEvent }) {
  if (!chart.lines.length) return html`<p class="soft place">Not measured between these days.</p>`;
  return html`<${Legend} trend=${trend} chart=${chart} stats=${stats} />
    <${TrendChart} trend=${trend} chart=${chart} stats=${stats} width=${WIDTH} onRun=${onRun} onEvent=${onEvent} />`;
}

/** Call `then` once, when `element` is near the window; returns what stops waiting. */
function whenNear(element, then) {
  if (typeof IntersectionObserver === "undefined") return then();
  observer ??= new IntersectionObserver(arrive, { rootMargin: NEAR });
  waiting.set(element, then);
  observer.observe(element);
  return () => leave(element);
}

function arrive(entries) {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    const then = waiting.get(target);
    leave(target);
    then?.();
  }
}

function leave(element) {
  waiting.delete(element);
  observer?.unobserve(element);
}
