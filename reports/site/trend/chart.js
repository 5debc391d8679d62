// SPDX-License-Identifier: Apache-2.0
/**
 * A chart as one SVG: runs in time order on x, the quantity from zero on y.
 *
 * All but the cursor is drawn once; a pointer or the arrow keys move it, and what it stands on is said.
 */
import { html } from "htm/preact";
import { useMemo, useState } from "preact/hooks";

import { Axes, Background, Beyond, Changes, LimitNames, Limits, Names, StepRange, ValueLine } from "./marks.js";
import { isQuiet, linesOf } from "./points.js";
import { at, layoutOf, nearestRun } from "./scale.js";
import { describe, runWords, titleWords } from "./words.js";

export { Legend } from "./legend.js";
export { niceTop } from "./scale.js";

const LETTER_PX = 5.7; // of the text beside the cursor, about
const ROW_PX = 14;

/**
 * @param {{trend: import("./types.js").Trend, chart: import("./types.js").Chart, stats?: string[],
 *          width?: number, height?: number, log?: boolean, ends?: [number, number], event?: number,
 *          onRun?: (run: number) => void, onEvent?: (event: number) => void}} props
 *   stats: the statistics to draw, else all; width and height in pixels; ends: of y, else from zero; event: the one whose
 *   step is shaded; onRun is given the index of the run
 *   that was chosen with a click or Enter, onEvent that of the event whose sign was clicked
 */
export function TrendChart({ trend, chart, stats = [], width = 380, height, log = false, ends, event, onRun, onEvent }) {
  const wanted = stats.join(" ");
  const lines = useMemo(() => linesOf(chart, stats), [chart, wanted]);
  const layout = useMemo(() => layoutOf({ trend, lines, width, height, log, ends }), [trend, lines, width, height, log, ends?.join()]);
  const [cursor, setCursor] = useState(-1);
  const still = useMemo(() => html`<${Still} ...${{ trend, chart, layout, event, onEvent }} />`, [layout, event, onEvent]);
  const { box, runs } = layout;
  const run = runs[cursor];
  const follow = (/** @type {PointerEvent} */ pointer) => setCursor(nearestRun(layout, pixelOf(pointer, box)));
  return html`<div class="trend-plot">
    <svg class=${`trend-chart${isQuiet(lines) ? " quiet" : ""}`} viewBox=${`0 0 ${box.width} ${box.height}`} role="img"
        tabindex="0" onKeyDown=${(/** @type {KeyboardEvent} */ key) => onKey(key, { runs, cursor, setCursor, onRun })}
        onPointerMove=${follow} onPointerLeave=${() => setCursor(-1)} onBlur=${() => setCursor(-1)}
        onClick=${(/** @type {PointerEvent} */ click) => {
          const chosen = runs[nearestRun(layout, pixelOf(click, box))];
          if (chosen !== undefined) onRun?.(chosen);
        }}>
      <title>${titleWords(chart, lines)}</title>
      <desc>${describe(trend, lines, runs)}</desc>
      ${still}
      ${run !== undefined && html`<${Cursor} trend=${trend} layout=${layout} run=${run} />`}
    </svg>
    <p class="unseen" aria-live="polite">${run === undefined ? "" : spoken(runWords(trend, layout.lines, run))}</p>
  </div>`;
}

const spoken = ({ head, lines }) => [head, ...lines].join(", ");

/** Everything but the cursor; without a value there are axes and a word. */
function Still({ trend, chart, layout, event, onEvent }) {
  const { box, lines, main } = layout;
  const measured = lines.some(({ points }) => points.some(({ value }) => value !== null));
  return html`<g>
    <rect class="ground" x="0" y="0" width=${box.width} height=${box.height}><title></title></rect>
    <${Axes} layout=${layout} />
    ${!measured && html`<text class="m u" x=${at((box.left + box.right) / 2)} y=${at(box.top + 26)}>not measured in these runs</text>`}
    ${event !== undefined && html`<${StepRange} layout=${layout} event=${event} />`}
    <${Background} layout=${layout} />
    <${Limits} layout=${layout} />
    ${lines.filter((drawn) => drawn !== main).map((drawn) => html`<${ValueLine} layout=${layout} drawn=${drawn} />`)}
    <${ValueLine} layout=${layout} drawn=${main} main />
    <${Beyond} layout=${layout} />
    <${LimitNames} layout=${layout} />
    <${Names} layout=${layout} />
    <${Changes} trend=${trend} layout=${layout} onEvent=${onEvent} />
  </g>`;
}

/** A vertical line at a run, a dot on each line, and what was measured there. */
function Cursor({ trend, layout, run }) {
  const { box, lines, x, y } = layout;
  const { head, lines: said } = runWords(trend, lines, run);
  const rows = [head, ...said];
  const width = Math.min(box.width, Math.max(...rows.map((text) => text.length)) * LETTER_PX + 14);
  const left = at(Math.max(0, Math.min(box.width - width, x(run) > box.width / 2 ? x(run) - width - 8 : x(run) + 8)));
  const values = lines.flatMap(({ points }) => points.filter((point) => point.run === run && point.value !== null));
  return html`<g class="cursor">
    <path class="cursor-line" d=${`M${x(run)} ${box.top}V${box.bottom}`} />
    <path class="cursor-dots" d=${values.map(({ value }) => `M${x(run)} ${y(value)}h0`).join("")} />
    <rect class="tip" x=${left} y=${box.top} rx="4" width=${at(width)} height=${rows.length * ROW_PX + 8} />
    ${rows.map((text, index) => html`<text class=${index ? "tip-text" : "tip-text u"} x=${at(left + 7)}
      y=${box.top + (index + 1) * ROW_PX}>${text}</text>`)}
  </g>`;
}

/** Where on the drawing a pointer stands, whatever its size on the screen. */
function pixelOf(event, { width }) {
  const { left, width: shown } = event.currentTarget.getBoundingClientRect();
  return shown ? ((event.clientX - left) * width) / shown : 0;
}

/** Left and right move the cursor by a run, Home and End to the first and newest; Enter chooses the run. */
function onKey(event, { runs, cursor, setCursor, onRun }) {
  const newest = runs.length - 1;
  const from = cursor < 0 ? newest + 1 : cursor;
  const places = { ArrowLeft: Math.max(0, from - 1), ArrowRight: Math.min(newest, from + 1), Home: 0, End: newest };
  if (event.key in places && newest >= 0) {
    event.preventDefault();
    event.stopPropagation();
    setCursor(places[event.key]);
  } else if (event.key === "Enter" && cursor >= 0 && onRun) {
    event.preventDefault();
    event.stopPropagation();
    onRun(runs[cursor]);
  }
}
