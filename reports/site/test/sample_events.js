// SPDX-License-Identifier: Apache-2.0
/** Events, levels and changes of the planted steps of sample.js. */
import { commitOf, concerns, rounded } from "./sample_steps.js";

const HALF_WIDTH = 0.01; // of every made-up interval, relative

/**
 * Events of the planted steps; fills `levels` and `changes` of `series`.
 *
 * @param {any[]} series
 * @param {any} runs
 * @param {import("./sample_steps.js").Planted[]} plant
 */
export function eventsOf(series, runs, plant) {
  const events = plant.map((step, number) => {
    const found = series.map((item, index) => [item, index]).filter(([item]) => concerns(step, item, item.metric));
    found.forEach(([item]) => change(item, number, step));
    return event(step, found, runs);
  });
  series.forEach(fillLevels);
  return events;
}

/** @param {import("./sample_steps.js").Planted} step */
function change(item, event, step) {
  const { night, change: relative, cause } = step;
  const before = item.points.reference[night - 1];
  item.changes.push({
    event, position: night, change: relative, low: rounded(relative - HALF_WIDTH), high: rounded(relative + HALF_WIDTH),
    of_ratio: cause === "firmware", before, after: rounded(before * (1 + relative)),
  });
  item.changes.sort((a, b) => a.position - b.position);
}

/** @param {import("./sample_steps.js").Planted} step */
function event(step, found, runs) {
  const { night, change: relative, cause = "firmware" } = step;
  const boards = [...new Set(found.map(([item]) => `${item.rack}/${item.board}`))];
  const [telling] = found[0];
  const worse = (relative > 0) === (telling.direction === "lower");
  const headline = words(cause, boards, found.length, telling, relative, night);
  return {
    cause, effect: worse ? "worse" : "better", racks: [...new Set(found.map(([item]) => item.rack))], boards,
    night: runs.started_utc[telling.points.run[night]].slice(0, 10), nights: telling.points.run.length - night,
    change: relative, low: rounded(relative - HALF_WIDTH), high: rounded(relative + HALF_WIDTH), of_ratio: cause === "firmware",
    good: commitOf(night - 1), bad: commitOf(night),
    conditions: cause === "environment" ? [`${telling.board}.channel: 6 → 11 on ${runs.started_utc[telling.points.run[night]].slice(0, 10)}`] : [],
    headline, sentence: `${headline}; the nights before and after it differ by more than chance.`,
    bisect: cause === "firmware" ? `git bisect start ${commitOf(night).slice(0, 7)} ${commitOf(night - 1).slice(0, 7)}` : "",
    note: "", run: telling.points.run[night], series: found.map(([, index]) => index),
  };
}

function words(cause, boards, count, telling, relative, night) {
  const percent = `${Math.round(Math.abs(relative) * 100)} %`;
  const how = telling.direction === "higher" ? (relative > 0 ? "higher" : "lower") : relative > 0 ? "slower" : "faster";
  const where = `${boards.length} board${boards.length === 1 ? "" : "s"}`;
  if (cause === "board") return `Board ${boards[0]}: ${count} series ${percent} ${how}, its neighbours are as before`;
  if (cause === "environment") return `Access point: channel 6 → 11, ${count} series on ${where} ${percent} ${how}`;
  const what = `${telling.quantity} ${telling.stat}`.trim();
  return `${cause === "firmware" ? "Firmware" : "Unclear"}: ${what} ${percent} ${how} on ${where} since ${commitOf(night).slice(0, 7)}`;
}

function fillLevels(item) {
  const last = item.points.run.length - 1;
  const starts = [0, ...item.changes.map(({ position }) => position)];
  starts.forEach((from, index) => {
    const to = index + 1 < starts.length ? starts[index + 1] - 1 : last;
    const values = item.points.value.slice(from, to + 1).sort((a, b) => a - b);
    const value = values[Math.floor(values.length / 2)];
    item.levels.push({ from, to, value, low: rounded(value * (1 - HALF_WIDTH)), high: rounded(value * (1 + HALF_WIDTH)) });
  });
}
