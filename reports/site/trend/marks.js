// SPDX-License-Identifier: Apache-2.0
/** What uPlot does not draw: levels, limits, points beyond them, names of lines, and the signs of changes. */
import uPlot from "uplot";

import { colour } from "./plot.js";
import { excess } from "./points.js";
import { quantity } from "./units.js";
import { changeTone, runName, sign, signedPercent, timeOf } from "./words.js";

const GAP_PX = 11; // between two names
const LARGE_PX = 200; // a plot that is higher has room for the names of all limits

/** Draw within the plot; sizes are in pixels of the screen. @param {uPlot} u @param {string} name  of the colour */
export function pen(u, name, { width = 1, dash = /** @type {number[]} */ ([]), alpha = 1, fill = false }, draw) {
  const { ctx, bbox } = u;
  const path = new Path2D();
  draw(path);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = colour(name);
  ctx.globalAlpha = alpha;
  ctx.lineWidth = width * uPlot.pxRatio;
  ctx.setLineDash(dash.map((length) => length * uPlot.pxRatio));
  if (fill) ctx.fill(path);
  else ctx.stroke(path);
  ctx.restore();
}

/** Write at a place of the canvas; `name` is of the colour. @param {uPlot} u @param {string} text @param {number} x @param {number} y */
export function write(u, text, x, y, { name = "soft", align = "left", bold = false } = {}) {
  const { ctx } = u;
  ctx.save();
  ctx.font = `${bold ? "600 " : ""}${10.5 * uPlot.pxRatio}px system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif`;
  Object.assign(ctx, { textAlign: align, textBaseline: "middle", lineJoin: "round", lineWidth: 3 * uPlot.pxRatio });
  Object.assign(ctx, { strokeStyle: colour("card"), fillStyle: colour(name) });
  ctx.strokeText(text, x, y);
  ctx.fillText(text, x, y);
  ctx.restore();
}

/** A horizontal line of the plot, from one place to another. */
export function level(u, { from, to, value }, name, style = {}) {
  const y = u.valToPos(value, "y", true);
  pen(u, name, style, (path) => { path.moveTo(u.valToPos(from, "x", true), y); path.lineTo(u.valToPos(to, "x", true), y); });
}

/**
 * The hooks of uPlot that draw the marks of a chart.
 *
 * @param {Trend} trend
 * @param {Drawing} drawing
 * @param {{event?: number, ink: (stat: string) => string, onEvent?: (event: number) => void}} wanted
 *   event: whose step is shaded; ink: the name of the colour of a statistic
 */
export function marksOf(trend, drawing, { event, ink, onEvent }) {
  return {
    drawClear: [(u) => { drawStep(u, drawing, event); drawLevels(u, drawing, ink); }],
    draw: [
      (u) => { drawLimits(u, drawing); nameLimits(u, drawing); drawExcess(u, drawing); },
      (u) => { drawNames(u, drawing, ink); placeSigns(u, trend, drawing, onEvent); },
    ],
  };
}

/** Shade where an event's step lies: from the last run before to the first of the new level. */
function drawStep(u, { main: { series }, x }, event) {
  const change = series.changes.find((one) => one.event === event);
  if (!change) return;
  const [from, to] = [Math.max(0, change.position - 1), change.position].map((position) => u.valToPos(x(series.points.run[position]), "x", true));
  pen(u, "unsure", { alpha: 0.2, fill: true }, (path) => path.rect(from, u.bbox.top, Math.max(to - from, 2), u.bbox.height));
}

/** The levels of the main line between changes, each with its interval. */
function drawLevels(u, { main: { stat, series, points }, x, unit }, ink) {
  for (const { from, to, value, low, high } of series.levels) {
    const inside = points.filter(({ position }) => position >= from && position <= to);
    if (!inside.length || !Number.isFinite(value)) continue;
    const ends = { from: x(inside[0].run), to: x(inside[inside.length - 1].run) };
    const [left, right] = [ends.from, ends.to].map((place) => u.valToPos(place, "x", true));
    if (low !== null && high !== null) {
      const [bottom, top] = [low, high].map((end) => u.valToPos(end * unit.factor, "y", true));
      pen(u, ink(stat), { alpha: 0.14, fill: true }, (path) => path.rect(left, top, right - left, bottom - top));
    }
    level(u, { ...ends, value: value * unit.factor }, ink(stat), { alpha: 0.8 });
  }
}

/** A limit is a level in each run, with a step where it was changed. */
function drawLimits(u, { lines, x, unit }) {
  const right = u.bbox.left + u.bbox.width;
  for (const { points } of lines) {
    const places = points.map(({ run }) => u.valToPos(x(run), "x", true));
    const middle = (/** @type {number} */ index) => (places[index] + places[index + 1]) / 2;
    pen(u, "bad", { width: 1.1, dash: [5, 4], alpha: 0.75 }, (path) => points.forEach(({ limit }, index) => {
      if (limit === null) return;
      const y = u.valToPos(limit * unit.factor, "y", true);
      const first = points[index - 1]?.limit === null || !index;
      path[first ? "moveTo" : "lineTo"](index ? middle(index - 1) : u.bbox.left, y);
      path.lineTo(index < points.length - 1 ? middle(index) : right, y);
    }));
  }
}

/** Name the limits, on top of the lines: in a large chart each that has room, else that of the main line. */
function nameLimits(u, { lines, main, unit }) {
  const { min, max } = u.scales.y;
  const large = u.bbox.height > LARGE_PX * uPlot.pxRatio;
  [main, ...(large ? lines.filter((line) => line !== main) : [])].reduce((taken, { stat, series, points }) => {
    const limit = points.findLast((point) => point.limit !== null)?.limit;
    if (limit === undefined) return taken;
    const shown = limit * unit.factor;
    const arrow = shown > max ? " ↑" : shown < min ? " ↓" : "";
    const y = u.valToPos(Math.min(max, Math.max(min, shown)), "y", true) + (arrow === " ↑" ? 8 : -7) * uPlot.pxRatio;
    if (taken.some((other) => Math.abs(other - y) < GAP_PX * uPlot.pxRatio)) return taken;
    write(u, `limit ${lines.length > 1 && stat ? `${stat} ` : ""}${quantity(limit, series.unit)}${arrow}`, u.bbox.left + 4 * uPlot.pxRatio, y);
    return [...taken, y];
  }, /** @type {number[]} */ ([]));
}

/** Points beyond a limit: filled where it is broken, hollow where it is advice or not provable. */
function drawExcess(u, { lines, runs, x, unit }) {
  const size = (runs.length > 40 ? 2 : 3.5) * uPlot.pxRatio;
  for (const { series, points } of lines) {
    for (const point of points) {
      const how = excess(point, series);
      if (!how) continue;
      const [left, top] = [u.valToPos(x(point.run), "x", true), u.valToPos(Number(point.value) * unit.factor, "y", true)];
      pen(u, "bad", { width: 1.5, fill: how === "broken" }, (path) => path.arc(left, top, size, 0, 2 * Math.PI));
    }
  }
}

/** The lines' names at their right ends, moved apart where they would meet. */
function drawNames(u, { lines, unit }, ink) {
  if (lines.length < 2) return;
  const ends = lines.flatMap(({ stat, points }) => {
    const last = points.findLast(({ value }) => value !== null);
    return last ? [{ stat, y: u.valToPos(Number(last.value) * unit.factor, "y", true) }] : [];
  }).sort((a, b) => b.y - a.y);
  ends.reduce((below, { stat, y }) => {
    const place = Math.min(y, below - GAP_PX * uPlot.pxRatio);
    write(u, stat, u.bbox.left + u.bbox.width + 4 * uPlot.pxRatio, place, { name: ink(stat), bold: true });
    return place;
  }, Infinity);
}

/** A line and a sign for each change: its shape says the cause, its colour worse or better. A click opens the event. */
function placeSigns(u, trend, { changes, x }, onEvent) {
  const there = u.over.querySelectorAll(".change"); // made once: a click must end on what it began on
  changes.forEach((one, index) => {
    const mark = there[index] ?? u.over.appendChild(signOf(trend, one, onEvent));
    const left = u.valToPos(x(one.run), "x");
    mark.hidden = left < 0 || left > u.over.clientWidth;
    mark.style.left = `${left}px`;
  });
}

function signOf(trend, { line, change, run }, onEvent) {
  const { cause = "unclear", headline = "" } = trend.events[change.event] ?? {};
  const mark = document.createElement("span");
  mark.className = `change tone-${changeTone(cause, change, line.series)}`;
  mark.textContent = sign({ cause, change: change.change });
  mark.title = `${headline || `${line.stat} ${signedPercent(change.change)}`}\n${timeOf(trend, run).slice(0, 10)}, ${runName(trend, run)}`;
  if (onEvent) mark.addEventListener("click", (click) => { click.stopPropagation(); onEvent(change.event); });
  return mark;
}
