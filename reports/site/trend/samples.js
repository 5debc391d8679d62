// SPDX-License-Identifier: Apache-2.0
/** Single samples over the time within their boot; those that failed stand in a lane above. */
import { html } from "htm/preact";
import { useState } from "preact/hooks";

import { Frame, fromZero, logEnds, makeAxis, room } from "./frame.js";
import { dots } from "./marks.js";
import { drawable } from "./points.js";
import { quantity } from "./units.js";
import { boardAndKind } from "./words.js";

const HEIGHT = 320;
const LANE_PX = 18; // above the plot, for what failed
const EVERY = -1; // boot

/**
 * @param {{chart: import("./types.js").Chart, detail: import("./details.js").Detail, width?: number}} props
 */
export function SamplesView({ chart, detail, width = 900 }) {
  const { samples, distribution, unit } = detail;
  const [chosen, choose] = useState(EVERY);
  if (!samples || !samples.value.length) return html`<p class="soft">${whyNone(samples)}</p>`;
  const boots = [...new Set(samples.boot)].sort((a, b) => a - b);
  const boot = boots.includes(chosen) ? chosen : EVERY;
  const places = samples.value.map((value, index) => ({ boot: samples.boot[index], time: samples.time_s[index], value }))
    .filter(({ value, time }) => drawable(value) !== null && drawable(time) !== null);
  if (!places.length) return html`<p class="soft">No sample of this figure has a value that can be drawn.</p>`;
  return html`<div class="samples">
    <p class="choices"><label>Boot <select onChange=${(/** @type {any} */ event) => choose(Number(event.currentTarget.value))}>
      <option value=${EVERY} selected=${boot === EVERY}>all ${boots.length}, laid over one another</option>
      ${boots.map((each) => html`<option value=${each} selected=${each === boot}>${each}</option>`)}
    </select></label></p>
    <${Plot} ...${{ chart, places, boot, failed: samples.failed_time_s, log: distribution?.scale === "log", unit, width }} />
    <p class="soft">${shownWords(samples)}</p>
  </div>`;
}

function whyNone(samples) {
  if (!samples) return "The run that is reported kept no times of single samples of this figure.";
  return `No sample of this figure succeeded; ${samples.failed_time_s.length.toLocaleString("en-GB")} failed.`;
}

/** "600 of 12,000 samples shown, extremes kept; 2 failed." */
export function shownWords(/** @type {import("./details.js").Samples} */ { value, of, failed_time_s: failed }) {
  const count = (/** @type {number} */ number) => number.toLocaleString("en-GB");
  const shown = value.length < of ? `${count(value.length)} of ${count(of)} samples shown, extremes kept` : `All ${count(of)} samples shown`;
  return `${shown}; ${failed.length ? `${count(failed.length)} failed` : "none failed"}.`;
}

function Plot({ chart, places, boot, failed, log, unit, width }) {
  const box = { width, height: HEIGHT, left: 58, right: width - 16, top: 14 + (failed.length ? LANE_PX : 0), bottom: HEIGHT - 28 };
  const values = places.map(({ value }) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const logarithmic = log && low > 0;
  const last = Math.max(...places.map(({ time }) => time), ...failed, 0);
  const y = makeAxis({ ends: logarithmic ? logEnds(low, high) : fromZero(high, unit), unit, range: [box.bottom, box.top], log: logarithmic, count: 4 });
  const x = makeAxis({ ends: [0, last || 1], unit: "s", range: [box.left, box.right], count: room(box.right - box.left) });
  const place = (/** @type {any} */ { time, value }) => [x.to(time), y.to(value)];
  const own = places.filter((each) => boot === EVERY || each.boot === boot);
  const others = boot === EVERY ? [] : places.filter((each) => each.boot !== boot);
  return html`<svg class="trend-chart" viewBox=${`0 0 ${width} ${HEIGHT}`} role="img">
    <title>${`${chart.quantity} of single samples on ${boardAndKind(chart)}, over the time within the boot`}</title>
    <desc>${`${own.length} samples between ${quantity(low, unit)} and ${quantity(high, unit)}; ${failed.length} failed`}</desc>
    <${Frame} chart=${chart} box=${box} x=${x} y=${y}>
      ${others.length > 0 && html`<path class="sample other" d=${dots(others.map(place))} />`}
      <path class="sample" d=${dots(own.map(place))} />
      ${failed.length > 0 && html`<g class="failed">
        <text class="e" x=${box.left - 6} y=${box.top - LANE_PX + 6}>failed</text>
        <path d=${failed.map((/** @type {number} */ time) => `M${x.to(time) - 3} ${box.top - LANE_PX - 1}l6 6m-6 0l6 -6`).join("")} />
      </g>`}
    <//>
  </svg>`;
}
