/**
 * From the history's lines (docs/schema/history.schema.json) to what the page shows.
 *
 * Kinds never meet: a physical and a virtual board of one name are two groups. Neither do air profiles.
 * What a group says of "now" was measured in the runs that the report is about; cases that were not measured
 * there are kept apart, as past.
 *
 * @typedef {{value: number|null, outcome: string, limit?: number, blocking?: boolean,
 *            direction?: "higher", at_least?: true}} Metric  in the unit that its name ends with
 * @typedef {{run: object, metric: Metric}} Point  of one run
 * @typedef {{stat: string, points: Point[], now?: Metric}} Line  one statistic, oldest run first; ``now`` is what
 *            the reported runs measured
 * @typedef {{name: string, unit: string, lines: Line[], rank: Rank}} Chart  one quantity of a case
 * @typedef {{broken: boolean, closeness: number}} Rank  closeness is 1 at the limit, -1 without one
 */

const STATISTICS = ["p50", "p90", "p95", "p99", "p99.9", "tail5", "mean", "max"];
const UNLIMITED = { broken: false, closeness: -1 };

/**
 * Read a JSONL file's text; its lines were checked by whoever wrote it.
 *
 * @param {string} text
 */
export function parseLines(text) {
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/**
 * @param {object[]} runs  the lines, oldest first
 * @param {{reported?: string[], most?: number}} [options]  the ids of the runs that the report is about (else the
 *   newest), and how many runs are drawn at most, the newest
 * @returns {{runs: object[], dropped: number, reported: object[], groups: object[], past: object[]}}  groups and
 *   what is in them: the worst first; ``past`` holds groups of cases that no reported run measured
 */
export function buildModel(runs, { reported = runs.slice(-1).map(({ run_id: id }) => id), most = Infinity } = {}) {
  const now = new Set(reported);
  const all = runs.filter((run) => run.cases.length);
  const measured = all.filter((run, index) => index >= all.length - most || now.has(run.run_id));
  const groups = [...groupRuns(measured).values()].map((group) => finishGroup(group, now));
  return {
    runs: measured,
    dropped: all.length - measured.length,
    reported: runs.filter((run) => now.has(run.run_id)),
    groups: groups.map((group) => partOf(group, true)).filter(({ cases }) => cases.length).sort(worstFirst),
    past: groups.map((group) => partOf(group, false)).filter(({ cases }) => cases.length),
  };
}

function groupRuns(measured) {
  const groups = new Map();
  for (const run of measured) {
    for (const item of run.cases) {
      const bench = item.case_id.split("/", 1)[0];
      const profile = run.profile ?? "";
      const key = [run.rack, profile, bench, item.board, item.kind].join("/");
      const group = entry(groups, key, () => ({
        key, rack: run.rack, profile, bench, board: item.board, kind: item.kind, target: item.target, byCase: new Map(),
      }));
      const place = entry(group.byCase, item.case_id, () => ({ label: item.label, seen: [] }));
      place.label = item.label;
      place.seen.push({ run, metrics: item.metrics });
    }
  }
  return groups;
}

function finishGroup({ byCase, ...group }, now) {
  const cases = [...byCase.entries()].map(([id, place]) => {
    const charts = chartsOf(place.seen, now).sort(worstFirst);
    const measured = place.seen.some(({ run }) => now.has(run.run_id));
    return { id, label: place.label || "defaults", charts, rank: worst(charts), measured, last: place.seen.at(-1).run };
  });
  return { ...group, cases: cases.sort(worstFirst) };
}

/** The part of a group that was measured now, or the other one. */
function partOf(group, measured) {
  const cases = group.cases.filter((item) => item.measured === measured);
  return { ...group, cases, rank: worst(cases) };
}

/** One chart for each quantity; its statistics are lines over the runs in which the case was measured. */
function chartsOf(seen, now) {
  const charts = new Map();
  for (const name of new Set(seen.flatMap(({ metrics }) => Object.keys(metrics)))) {
    const { quantity, stat, unit } = splitName(name);
    const chart = entry(charts, `${quantity}_${unit}`, () => ({ name: quantity, unit, lines: [] }));
    const points = seen.map(({ run, metrics }) => ({ run, metric: metrics[name] ?? { value: null } }));
    chart.lines.push({ stat, points, now: nowOf(points, now) });
  }
  return [...charts.values()].map((chart) => ({ ...chart, rank: worst(chart.lines.map(rankOf)) }));
}

/**
 * publish_latency_p95_us → {quantity: "publish latency", stat: "p95", unit: "us"}; without a statistic the
 * stat is "".
 *
 * @param {string} name
 */
export function splitName(name) {
  const words = name.replace("_p99_9_", "_p99.9_").split("_");
  const unit = words.pop();
  const stat = STATISTICS.includes(words.at(-1)) ? words.pop() : "";
  return { quantity: words.join(" "), stat, unit };
}

/** What the reported runs measured of a line, the newest; undefined where they did not. */
function nowOf(points, now) {
  return points.findLast(({ run, metric }) => now.has(run.run_id) && metric.value !== null)?.metric;
}

/** Where a line stands now, against its limit. */
function rankOf({ now }) {
  if (now?.limit === undefined) return { rank: UNLIMITED };
  const broken = now.outcome === "regressed" && now.blocking;
  const [part, whole] = now.direction === "higher" ? [now.limit, now.value] : [now.value, now.limit];
  return { rank: { broken, closeness: whole ? part / whole : part > 0 ? Infinity : 0 } };
}

/**
 * Whether a value lies beyond its limit: "" where not, "broken" where the gate said so of a metric that
 * blocks, else "beyond" (advice, or not provably).
 *
 * @param {Metric} metric
 */
export function excess({ value, limit, direction, outcome, blocking }) {
  if (value === null || limit === undefined) return "";
  if (direction === "higher" ? value >= limit : value <= limit) return "";
  return outcome === "regressed" && blocking ? "broken" : "beyond";
}

function worst(items) {
  return items.map(({ rank }) => rank).reduce((a, b) => (compare(a, b) <= 0 ? a : b), UNLIMITED);
}

function worstFirst(a, b) {
  return compare(a.rank, b.rank);
}

function compare(a, b) {
  return b.broken - a.broken || (b.closeness === a.closeness ? 0 : b.closeness - a.closeness);
}

function entry(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}
