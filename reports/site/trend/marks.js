// SPDX-License-Identifier: Apache-2.0
/** The parts of a chart that do not move, as SVG: grid, lines, limits, levels, signs of changes. */
import { html } from "htm/preact";
import { area, line as path } from "d3-shape";

import { excess } from "./points.js";
import { at, runName } from "./scale.js";
import { quantity } from "./units.js";
import { changesOf, signedPercent } from "./words.js";

/** @typedef {import("./types.js").Trend} Trend */
/** @typedef {import("./types.js").Chart} Chart */
/** @typedef {import("./scale.js").Layout} Layout */
/** @typedef {import("./scale.js").Drawn} Drawn */
/** @typedef {import("./points.js").Point} Point */

const LABEL_GAP_PX = 11;
const LABEL_REACH_PX = 100; // about as wide as the longest name of a limit
const FONT_PX = 10.5; // as in charts.css

/** The class that gives a statistic its colour. */
export const statClass = (/** @type {string} */ stat) => (/^[\w.]+$/.test(stat) ? `stat-${stat.replace(".", "_")}` : "stat-one");

/** Round dots: a path of points without length, drawn with a round end. */
export const dots = (/** @type {number[][]} */ places) => places.map(([x, y]) => `M${x} ${y}h0`).join("");

/** Horizontal lines and the labels of both axes. */
export function Axes({ layout: { box, yTicks, xTicks } }) {
  return html`<g class="axes">
    ${yTicks.map(({ y, text }) => html`<path class="grid" d=${`M${box.left} ${y}H${box.right}`} />
      <text class="e" x=${box.left - 6} y=${at(y + 3.5)}>${text}</text>`)}
    ${xTicks.map(({ x, text, below }) => html`<path class="grid" d=${`M${x} ${box.bottom}v4`} />
      <text class=${anchorOf(x, text, box)} x=${anchoredX(x, text, box)} y=${box.bottom + 15}>${text}</text>
      ${below && html`<text class=${`${anchorOf(x, text, box)} u`} x=${anchoredX(x, text, box)} y=${box.bottom + 27}>${below}</text>`}`)}
  </g>`;
}

/** Labels at the right edge end there, so that none is cut off. */
const anchorOf = (x, text, box) => (x + text.length * 3 > box.width ? "e" : "m");
const anchoredX = (x, text, box) => (anchorOf(x, text, box) === "e" ? box.width - 1 : x);

/** Where an event's step lies: from the last point before to the first of the new level. */
export function StepRange({ layout: { main: { line }, box, x }, event }) {
  const change = line.series.changes.find((one) => one.event === event);
  if (!change) return null;
  const { run } = line.series.points;
  const [from, to] = [x(run[Math.max(0, change.position - 1)]), x(run[change.position])];
  return html`<rect class="step-range" x=${from} y=${box.top} width=${at(Math.max(to - from, 2))} height=${box.bottom - box.top} />`;
}

/** The 95 % interval of the main line, its levels between changes, and the reference firmware. */
export function Background({ layout }) {
  const { main: { line, points }, x, y } = layout;
  const band = area().digits(1).x(({ run }) => x(run)).y0(({ low }) => y(low)).y1(({ high }) => y(high))
    .defined(({ low, high }) => low !== null && high !== null);
  const reference = path().digits(1).x(({ run }) => x(run)).y(({ reference: value }) => y(value))
    .defined(({ reference: value }) => value !== null);
  const known = points.some((/** @type {Point} */ { low, high }) => low !== null && high !== null);
  return html`<g class=${statClass(line.stat)}>
    ${known && html`<path class="band" d=${band(points)} />`}
    ${points.some((/** @type {Point} */ point) => point.reference !== null)
      && html`<path class="reference" d=${reference(points)} />`}
    ${levelsOf(layout).map(({ from, to, value, low, high }) => html`
      ${low !== null && high !== null && html`<path class="level-band" d=${`M${from} ${y(low)}H${to}V${y(high)}H${from}Z`} />`}
      <path class="level" d=${`M${from} ${y(value)}H${to}`} />`)}
  </g>`;
}

/** Levels in pixels; one without a point is left out. */
function levelsOf({ main: { line, points }, x }) {
  const shown = new Map(points.map((/** @type {Point} */ point) => [point.position, point.run]));
  return line.series.levels.flatMap(({ from, to, value, low, high }) => {
    const inside = points.filter(({ position }) => position >= from && position <= to);
    if (!inside.length || !Number.isFinite(value)) return [];
    const [first, last] = [inside[0].position, inside[inside.length - 1].position];
    return [{ from: x(shown.get(first)), to: x(shown.get(last)), value, low: low ?? null, high: high ?? null }];
  });
}

/** A statistic's values; a run without one leaves a gap. Dots where runs are few or a point stands alone. */
export function ValueLine({ layout: { x, y, dense }, drawn: { line, points }, main }) {
  const draw = path().digits(1).x(({ run }) => x(run)).y(({ value }) => y(value)).defined(({ value }) => value !== null);
  const alone = (index) => (points[index - 1]?.value ?? null) === null && (points[index + 1]?.value ?? null) === null;
  const dotted = points.filter(({ value }, index) => value !== null && (!dense || alone(index) || index === points.length - 1));
  return html`<g class=${`${statClass(line.stat)}${main ? " main" : ""}${dense ? " dense" : ""}`}>
    <path class="line" d=${draw(points) ?? ""} />
    ${dotted.length > 0 && html`<path class="dots" d=${dots(dotted.map(({ run, value }) => [x(run), y(value)]))} />`}
  </g>`;
}

/** Points beyond a limit: filled where it is broken, hollow where it is advice or not provable. */
export function Beyond({ layout: { x, y, lines, dense } }) {
  /** @type {{broken: number[][], beyond: number[][]}} */
  const places = { broken: [], beyond: [] };
  for (const { line, points } of lines) {
    for (const point of points) {
      const how = excess(point, line.series);
      if (how) places[how].push([x(point.run), y(point.value)]);
    }
  }
  return html`<g class=${dense ? "excess dense" : "excess"}>
    ${places.beyond.length > 0 && html`<path class="beyond" d=${dots(places.beyond)} /><path class="hole" d=${dots(places.beyond)} />`}
    ${places.broken.length > 0 && html`<path class="broken" d=${dots(places.broken)} />`}
  </g>`;
}

/** A limit is a level in each run, where it was changed with a step. */
export function Limits({ layout }) {
  return html`<g class="limits">${layout.lines.map(({ line, points }) => {
    const path = limitPath(points, layout);
    return path && html`<path class="limit" key=${line.stat} d=${path} />`;
  })}</g>`;
}

/** The limits' names, on top of the lines; a small chart has its main line's only, the legend has all. */
export function LimitNames({ layout }) {
  const { lines, main, box } = layout;
  const taken = [];
  const named = box.bottom - box.top > 200 ? [main, ...lines.filter((drawn) => drawn !== main)] : [main];
  return html`<g class="limits">${named.map(({ line, points }) => {
    const newest = [...points].reverse().find(({ limit }) => limit !== null);
    if (!newest) return null;
    const beyond = newest.limit > layout.high ? " ↑" : newest.limit < layout.low ? " ↓" : "";
    const text = `limit ${lines.length > 1 ? `${line.stat} ` : ""}${quantity(newest.limit, line.series.unit)}${beyond}`;
    const edge = beyond === " ↓" ? box.bottom - 5 : box.top + 7;
    const y = labelPlace(beyond ? edge : freeSide(layout, layout.y(newest.limit)), taken, box);
    return y !== null && html`<text class="limit-text" key=${line.stat} x=${box.left + 4} y=${at(y)}>${text}</text>`;
  })}</g>`;
}

/** Above a limit's line; below it where values come near the label and are further away there. */
function freeSide({ lines, box, x, y }, limit) {
  const near = lines.flatMap(({ points }) => points.filter(({ run, value }) => value !== null && x(run) < box.left + LABEL_REACH_PX))
    .map(({ value }) => y(value));
  const room = (/** @type {number} */ middle) => Math.min(Infinity, ...near.map((other) => Math.abs(other - middle)));
  return limit + 12 < box.bottom && room(limit - 8) < LABEL_GAP_PX && room(limit + 8) > room(limit - 8) ? limit + 12 : limit - 4;
}

/** Where a label may stand, or null where another one is. */
function labelPlace(y, taken, { top }) {
  const place = Math.max(top + 7, y);
  if (taken.some((other) => Math.abs(other - place) < LABEL_GAP_PX)) return null;
  taken.push(place);
  return place;
}

function limitPath(points, { x, y, low, high, box }) {
  const middle = (index) => (x(points[index].run) + x(points[index + 1].run)) / 2;
  let drawn = "";
  let before = null;
  points.forEach(({ limit: value }, index) => {
    const limit = off(value, low, high) ? null : value;
    const from = index === 0 ? box.left : at(middle(index - 1));
    const to = index === points.length - 1 ? box.right : at(middle(index));
    if (limit !== null && before === null) drawn += `M${from} ${y(limit)}`;
    else if (limit !== null && limit !== before) drawn += `H${from}V${y(limit)}`;
    if (limit !== null && (index === points.length - 1 || off(points[index + 1].limit, low, high))) drawn += `H${to}`;
    before = limit;
  });
  return drawn;
}

const off = (limit, low, high) => limit === null || limit > high || limit < low;

/** The lines' names at their right ends, moved apart where they would meet. */
export function Names({ layout: { lines, x, y, box } }) {
  if (lines.length < 2) return null;
  const ends = lines.flatMap(({ line, points }) => {
    const last = [...points].reverse().find(({ value }) => value !== null);
    return last ? [{ stat: line.stat, y: y(last.value), x: x(last.run) }] : [];
  }).sort((a, b) => a.y - b.y);
  ends.forEach((end, index) => {
    end.y = Math.max(end.y, index ? ends[index - 1].y + LABEL_GAP_PX : box.top);
  });
  const over = ends.length ? Math.max(0, ends[ends.length - 1].y - box.bottom) : 0;
  return html`<g class="names">${ends.map(({ stat, y: place }) => html`
    <text class=${statClass(stat)} x=${box.right + 3} y=${at(place - over + 3.5)}>${stat}</text>`)}</g>`;
}

/** A vertical line and a sign for each change: its shape says the cause, its colour worse or better. */
export function Changes({ trend, layout: { lines, box, x }, onEvent }) {
  const changes = changesOf(lines.map(({ line }) => line));
  return html`<g class="change-marks">${changes.map(({ line, change }) => {
    const run = line.series.points.run[change.position];
    const event = trend.events[change.event];
    const cause = event?.cause ?? "unclear";
    const told = event?.headline || `${line.stat} ${signedPercent(change.change)}`.trim();
    return html`<g class=${`change ${toneOf(cause, change, line.series)}${cause === "environment" ? " hollow" : ""}`} key=${`${change.event}@${run}`}
        onClick=${onEvent && ((/** @type {MouseEvent} */ click) => { click.stopPropagation(); onEvent(change.event); })}>
      <title>${`${told}\n${trend.runs.started_utc[run].slice(0, 10)}, ${runName(trend, run)}`}</title>
      <path class="change-line" d=${`M${x(run)} ${box.top - 4}V${box.bottom}`} />
      <path class="change-room" d=${`M${x(run)} ${box.top - 10}h0`} />
      <path class="change-sign" d=${signPath(cause, change.change, x(run), box.top - 10)} />
      ${!CAUSES.includes(cause) && html`<text class="m change-what" x=${x(run)} y=${box.top - 5}>?</text>`}
    </g>`;
  })}</g>`;
}

const CAUSES = ["firmware", "board", "environment"];

/** As in the table of changes: red only where the firmware made it worse, green where it is better. */
export function toneOf(cause, { change }, { direction }) {
  if ((change > 0) === (direction === "higher")) return "good";
  return cause === "firmware" ? "bad" : CAUSES.includes(cause) ? "unsure" : "neutral";
}

/**
 * Firmware: a triangle that points to where the figures went. Board: a diamond. Environment: a ring. Else
 * nothing, for there stands a question mark.
 *
 * @param {string} cause
 * @param {number} change  relative; its sign counts
 * @param {number} x  the centre, pixels
 * @param {number} y
 */
export function signPath(cause, change, x, y) {
  const centre = `M${at(x)} ${at(y)}`;
  if (cause === "firmware") return change < 0 ? `${centre}m0 5l5 -9h-10z` : `${centre}m0 -5l5 9h-10z`;
  if (cause === "board") return `${centre}m0 -5.5l5 5.5l-5 5.5l-5 -5.5z`;
  if (cause === "environment") return `${centre}m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z`;
  return "";
}
