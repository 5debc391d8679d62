/** A chart as SVG: runs in time order on x, the quantity from zero on y, limits dashed. */
import { commitLink, escape, linked, runName } from "./html.js";
import { excess } from "./model.js";
import { digits, quantity, shownUnit } from "./units.js";

const WIDTH = 380;
const HEIGHT = 190;
const BOX = { left: 50, right: 362, top: 10, bottom: 150 };
const MOST_DOTS = 40; // more runs than this: a line without dots
const MOST_LABELS = 5;

/**
 * @param {import("./model.js").Chart} chart
 * @param {string} title  for readers that cannot see it
 */
export function renderChart(chart, title) {
  const runs = chart.lines[0].points.map(({ run }) => run);
  const scale = makeScale(chart, runs.length);
  const parts = [grid(scale), labels(runs, scale)];
  parts.push(...chart.lines.map((line) => limitLine(line, scale)));
  parts.push(...chart.lines.map((line) => valueLine(line, scale)));
  parts.push(...chart.lines.map((line) => beyondDots(line, scale))); // on top of the others
  parts.push(tooltips(chart, runs, scale));
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escape(title)}">${parts.join("")}</svg>`;
}

/**
 * What a chart's lines and limits are, in words, with the values of the reported run; those of a past case
 * are what was measured last, in grey.
 *
 * @param {import("./model.js").Chart} chart
 * @param {boolean} past
 */
export function renderLegend(chart, past = false) {
  return chart.lines.map((line) => {
    const metric = (past ? line.points.at(-1).metric : line.now) ?? { value: null };
    const { value, limit } = metric;
    const newest = value === null ? "–" : amount(metric, chart);
    const against = limit === undefined ? "" : `<span class="of">limit ${quantity(limit, chart.unit)}</span>`;
    return `<li class="${statClass(line.stat)}"><i></i>${escape(line.stat)} ${past ? `<span class="of">${newest}</span>` : `<b>${newest}</b>`} ${against}</li>`;
  }).join("");
}

function makeScale(chart, count) {
  const unit = unitOf(chart);
  const top = niceTop(largest(chart) * unit.factor || 0.9);
  const step = (BOX.right - BOX.left - 12) / Math.max(1, count - 1);
  const x = (index) => (count === 1 ? (BOX.left + BOX.right) / 2 : BOX.left + 6 + index * step);
  const y = (value) => BOX.bottom - ((BOX.bottom - BOX.top) * value * unit.factor) / top;
  return { unit, top, x, y, step, count };
}

function unitOf(chart) {
  return shownUnit(chart.unit, largest(chart));
}

function largest(chart) {
  const metrics = chart.lines.flatMap(({ points }) => points.map(({ metric }) => metric));
  return metrics.reduce((most, { value, limit }) => Math.max(most, value ?? 0, limit ?? 0), 0);
}

/** The next of 1, 1.5, 2, 3, 4, 5, 6, 8 × 10ⁿ above `amount`, with some room. */
export function niceTop(amount) {
  const power = 10 ** Math.floor(Math.log10(amount * 1.04));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((top) => top >= amount * 1.04);
}

function grid({ unit, top }) {
  return [0, 0.5, 1].map((share) => {
    const y = at(BOX.bottom - (BOX.bottom - BOX.top) * share);
    const label = `${digits(top * share)}${share === 1 ? ` ${unit.symbol}` : ""}`.trim();
    return `<path class="grid" d="M${BOX.left} ${y}H${BOX.right}"/><text x="${BOX.left - 5}" y="${at(y + 3.5)}" class="e">${escape(label)}</text>`;
  }).join("");
}

function labels(runs, { x }) {
  const every = Math.max(1, Math.ceil((runs.length - 1) / (MOST_LABELS - 1)));
  const shown = runs.map((run, index) => ({ run, index }))
    .filter(({ index }) => index === runs.length - 1 || (index % every === 0 && runs.length - 1 - index >= every * 0.7));
  const sameDay = runs[0].started_utc.slice(0, 10) === runs.at(-1).started_utc.slice(0, 10);
  const [from, to] = sameDay ? [11, 16] : [5, 10];
  return shown.map(({ run, index }) => {
    const date = `<tspan x="${at(x(index))}" dy="13" class="u">${escape(run.started_utc.slice(from, to))}</tspan>`;
    const text = `<text x="${at(x(index))}" y="${BOX.bottom + 15}" class="m">${escape(runName(run))}${date}</text>`;
    return linked(commitLink(run), text);
  }).join("");
}

/** A limit is a level in each run; where it was changed the line has a step. */
function limitLine({ stat, points }, { x, y, step, count }) {
  let path = "";
  let before;
  points.forEach(({ metric: { limit } }, index) => {
    if (limit === undefined) return (before = undefined);
    const reach = count === 1 ? (BOX.right - BOX.left) / 2 : step / 2;
    const [from, to] = [Math.max(BOX.left, x(index) - reach), Math.min(BOX.right, x(index) + reach)];
    path += before === undefined ? `M${at(from)} ${at(y(limit))}` : limit === before ? "" : `V${at(y(limit))}`;
    path += limit === points[index + 1]?.metric.limit ? "" : `H${at(to)}`;
    before = limit;
  });
  return path && `<path class="limit ${statClass(stat)}" d="${path}"/>`;
}

function valueLine({ stat, points }, { x, y, count }) {
  let path = "";
  let dots = "";
  points.forEach(({ metric: { value } }, index) => {
    if (value === null) return;
    const joined = index > 0 && points[index - 1].metric.value !== null;
    path += `${joined ? "L" : "M"}${at(x(index))} ${at(y(value))}`;
    if (count <= MOST_DOTS || index === count - 1) dots += `<circle cx="${at(x(index))}" cy="${at(y(value))}" r="2.2"/>`;
  });
  return `<g class="${statClass(stat)}"><path class="line" d="${path}"/>${dots}</g>`;
}

function beyondDots({ points }, { x, y }) {
  return points.map(({ metric }, index) => {
    const how = excess(metric);
    return how && `<circle class="${how}" cx="${at(x(index))}" cy="${at(y(metric.value))}" r="4"/>`;
  }).join("");
}

/** One column a run, to point at. */
function tooltips(chart, runs, { x, step, count }) {
  const width = count === 1 ? 60 : step;
  const columns = runs.map((run, index) => {
    const title = tooltip(run, chart.lines.map(({ stat, points }) => ({ stat, metric: points[index].metric })), chart);
    const column = `<rect x="${at(x(index) - width / 2)}" width="${at(width)}"><title>${escape(title)}</title></rect>`;
    return linked(run.url, column);
  });
  return `<g class="tips">${columns.join("")}</g>`;
}

function tooltip(run, values, chart) {
  const said = values.filter(({ metric }) => metric.value !== null).map(({ stat, metric }) => {
    return `${stat} ${amount(metric, chart)}`.trim() + beyondWords(metric, chart);
  });
  const when = run.started_utc.slice(0, 16).replace("T", " ");
  return [`${runName(run)} · ${when}`, ...(said.length ? said : ["not measured"])].join("\n");
}

function amount({ value, at_least: atLeast }, { unit }) {
  return `${atLeast ? "≥ " : ""}${quantity(value, unit)}`;
}

function beyondWords(metric, { unit }) {
  if (!excess(metric)) return "";
  const advice = metric.blocking ? "" : " (advice)";
  const how = metric.outcome === "regressed" ? advice : ", not provably";
  return `, beyond its limit of ${quantity(metric.limit, unit)}${how}`;
}

const statClass = (stat) => (stat ? `stat-${stat.replace(".", "_")}` : "stat-one");

/** A coordinate with at most one decimal. */
const at = (value) => Math.round(value * 10) / 10;
