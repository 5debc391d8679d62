// SPDX-License-Identifier: Apache-2.0
/** uPlot as a component: as wide as its place, in the colours of the theme, read with a pointer or the arrow keys. */
import { html } from "htm/preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

const FONT = '10.5px system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';
const live = new Set();
const colours = new Map();

/** A colour of the style sheet by its name, as a canvas takes it. */
export function colour(/** @type {string} */ name) {
  if (!colours.has(name)) {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return colours.get(name);
}

/** A colour of colour(), nearly transparent. */
export const faint = (/** @type {string} */ solid) => solid.replace(/^rgb\((.*)\)$/, "rgba($1, .16)");

/** Draw all charts again: the theme is another one. */
export function repaint() {
  colours.clear();
  live.forEach((plot) => plot.redraw(false));
}
if (typeof matchMedia !== "undefined") matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

/** An axis in the page's font and colours. */
export const axis = (/** @type {uPlot.Axis} */ more) => ({
  font: FONT, stroke: () => colour("soft"), grid: { stroke: () => colour("rule"), width: 1 }, ticks: { show: false }, ...more,
});

/**
 * @param {{name: string, data: any, options: any, height: number, class?: string, tip?: (index: number) => string[],
 *   onChoose?: (index: number) => void}} props
 *   name: what it shows, in words; options: of uPlot; data and options stay the same ones as long as the chart does; tip:
 *   the lines beside the cursor, which are also read aloud
 */
export function Plot({ name, data, options, height, class: kind = "", tip, onChoose }) {
  const host = useRef(/** @type {any} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const said = useRef(/** @type {any} */ (null));
  const latest = useRef({ tip, onChoose });
  latest.current = { tip, onChoose };
  useLayoutEffect(() => {
    const width = () => Math.max(120, host.current.clientWidth);
    const show = (/** @type {uPlot} */ u) => showTip(u, said.current, latest.current.tip);
    const hooks = { ...options.hooks, setCursor: [show] };
    const cursor = { y: false, drag: { x: false, y: false }, points: { show: Boolean(tip) }, x: Boolean(tip), ...options.cursor };
    const u = new uPlot({ legend: { show: false }, ...options, cursor, hooks, width: width(), height }, data, host.current);
    u.over.addEventListener("click", () => typeof u.cursor.idx === "number" && latest.current.onChoose?.(u.cursor.idx));
    const fit = new ResizeObserver(() => u.width !== width() && u.setSize({ width: width(), height }));
    fit.observe(host.current);
    live.add(plot.current = u);
    return () => { fit.disconnect(); live.delete(u); u.destroy(); };
  }, [data, options, height]);
  const look = () => plot.current?.redraw(false);
  return html`<div class="trend-plot">
    <div class=${`trend-chart ${kind}`} role="img" aria-label=${name} tabindex=${tip ? 0 : undefined} ref=${host} onPointerEnter=${look}
      onPointerLeave=${look} onFocus=${look} onBlur=${() => { leave(plot.current); look(); }}
      onKeyDown=${(event) => tip && onKey(event, plot.current, onChoose)}></div>
    ${tip && html`<p class="tip" aria-live="polite" hidden ref=${said}></p>`}
  </div>`;
}

const leave = (/** @type {uPlot} */ u) => u.setCursor({ left: -10, top: -10 });

/** Say what stands under the cursor, beside it. */
function showTip(u, said, tip) {
  if (!said || !tip) return;
  const { idx, left } = u.cursor;
  said.hidden = typeof idx !== "number" || left < 0;
  if (said.hidden) return;
  said.replaceChildren(...tip(idx).map((text) => Object.assign(document.createElement("span"), { textContent: text })));
  const [x, room] = [u.over.offsetLeft + left, u.width - said.offsetWidth];
  said.style.left = `${Math.max(0, Math.min(room, x > u.width / 2 ? x - said.offsetWidth - 8 : x + 8))}px`;
}

/** Left and right move the cursor by a run, Home and End to the first and newest; Enter chooses the run. */
function onKey(event, u, onChoose) {
  const newest = u.data[0].length - 1;
  const from = u.cursor.left >= 0 ? u.cursor.idx : newest + 1;
  const places = { ArrowLeft: Math.max(0, from - 1), ArrowRight: Math.min(newest, from + 1), Home: 0, End: newest };
  if (event.key in places && newest >= 0) u.setCursor({ left: u.valToPos(u.data[0][places[event.key]], "x"), top: 0 });
  else if (event.key === "Enter" && u.cursor.left >= 0 && onChoose) onChoose(u.cursor.idx);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
