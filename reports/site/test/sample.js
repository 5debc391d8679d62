// SPDX-License-Identifier: Apache-2.0
/**
 * Trend data as docs/reference/schema/trend.schema.json has it, made up from a seed: for the tests and for trying the
 * page.
 */
import { detailsOf } from "./sample_details.js";
import { eventsOf } from "./sample_events.js";
import { commitOf, concerns, random, rounded } from "./sample_steps.js";

export { random };

/** @typedef {import("./sample_steps.js").Planted} Planted */

const NEWEST_DAY_MS = Date.UTC(2026, 10, 20, 1, 15);
const DAY_MS = 86_400_000;

/**
 * @type {[string, number, number, number|null, boolean, boolean][]}  metric, value, spread of a night, limit,
 * blocking, higher is better
 */
const METRICS = [
  ["publish_latency_p50_us", 7_000, 0.02, null, false, false],
  ["publish_latency_p95_us", 16_000, 0.03, 25_000, true, false],
  ["publish_latency_p99_us", 29_000, 0.05, 60_000, true, false],
  ["publish_throughput_mbps", 11.4, 0.02, 8, true, true],
  ["publish_failed_ratio", 0.0004, 0.3, 0.01, true, false],
  ["heap_free_mean_bytes", 182_000, 0.001, 120_000, false, true],
];
const CASES = [
  ["publish/qos=1", "defaults"], ["publish/transport=tls", "transport=tls"], ["publish/qos=0", "qos=0"],
  ["publish/payload_bytes=1024", "payload_bytes=1024"], ["echo/size=64", "size=64"], ["echo/size=1024", "size=1024"],
  ["iperf/direction=tx", "direction=tx"], ["iperf/direction=rx", "direction=rx"], ["http/keepalive=1", "keepalive=1"],
  ["http/keepalive=0", "keepalive=0"],
];

/**
 * @param {{nights?: number, boards?: number, cases?: number, seed?: number, plant?: Planted[], kind?: string,
 *          simulated?: string, racks?: number, details?: boolean, profile?: string}} [wanted]
 *   each board has six series a case; boards are dealt out to the racks, and each rack has one run a night
 */
export function sampleTrend(wanted = {}) {
  const { nights = 60, racks = 1, seed = 1, plant = [], kind = "physical", details = true } = wanted;
  const runs = makeRuns(nights, racks);
  const places = placesOf({ boards: 4, cases: 4, racks, ...wanted });
  const series = places.flatMap((place, number) => METRICS.map((metric, index) => {
    return makeSeries({ ...place, kind, simulated: wanted.simulated ?? "", profile: wanted.profile ?? "" },
      metric, { nights, racks, plant, random: random(seed * 7919 + number * 31 + index) });
  }));
  const events = eventsOf(series, runs, plant);
  const reported = runs.reported.lastIndexOf(1);
  return {
    schema: 1, title: "HIL performance",
    remark: kind === "virtual" ? "Virtual figures come from a simulated board; they are not those of a chip." : "",
    links: { home: "../index.html", tests: "../tests/index.html" },
    runs, series, events,
    notes: [], dropped_runs: 0,
    details: details ? detailsOf(series, reported, random(seed)) : {},
  };
}

/** A few nights on two boards: one limit broken now, one firmware change, one board that drifts. */
export function smallTrend() {
  return sampleTrend({
    nights: 24, boards: 3, cases: 2, seed: 3,
    plant: [
      { night: 14, change: 0.65, cause: "firmware", metrics: /latency/, cases: /tls/ },
      { night: 18, change: 0.09, cause: "board", boards: ["e3"] },
      { night: 9, change: 0.15, cause: "environment", metrics: /latency/ },
      { night: 6, change: 0.18, cause: "firmware", metrics: /throughput/ },
    ],
  });
}

function makeRuns(nights, racks) {
  /** @type {Record<string, any[]>} */
  const runs = { id: [], started_utc: [], commit: [], dirty: [], rack: [], trigger: [], suite: [], profile: [], url: [], reported: [] };
  for (let night = 0; night < nights; night++) {
    for (let rack = 0; rack < racks; rack++) {
      const started = new Date(NEWEST_DAY_MS - (nights - 1 - night) * DAY_MS + rack * 60_000).toISOString().slice(0, 19);
      const name = rackName(rack);
      runs.id.push(`${started.replaceAll(/[-:]/g, "")}Z-nightly-${String(night).padStart(4, "0")}${rack}`);
      runs.started_utc.push(`${started}Z`);
      runs.commit.push(commitOf(night));
      runs.dirty.push(0);
      runs.rack.push(name);
      runs.trigger.push("nightly");
      runs.suite.push("nightly");
      runs.profile.push("");
      runs.url.push(`https://github.example/acme/firmware/actions/runs/${1000 + night}`);
      runs.reported.push(night === nights - 1 ? 1 : 0);
    }
  }
  return runs;
}

const rackName = (number) => ["lab", "attic", "cellar"][number] ?? `rack${number}`;

function placesOf({ boards, cases, racks }) {
  return Array.from({ length: boards }, (_, board) => Array.from({ length: cases }, (_, number) => {
    const [id, label] = CASES[number] ?? [`publish/n=${number}`, `n=${number}`];
    return {
      rack: rackName(board % racks), rackNumber: board % racks, board: `e${board + 1}`, target: board % 2 ? "esp32c3" : "esp32",
      bench: id.split("/")[0], case_id: id, label,
    };
  })).flat();
}

function makeSeries({ rackNumber, ...place }, [metric, base, spread, limit, blocking, higher], { nights, racks, plant, random: next }) {
  const own = base * (0.9 + 0.2 * next());
  const steps = plant.filter((step) => concerns(step, place, metric));
  /** @type {Record<string, any>} */
  const points = { run: [], value: [], outcome: "", low: [], high: [], reference: [], boots: [], limit: [], at_least: [] };
  for (let night = 0; night < nights; night++) {
    const noise = 1 + spread * (next() + next() + next() - 1.5);
    const value = own * noise * factor(steps, night, () => true);
    const reference = own * (1 + spread * (next() - 0.5)) * factor(steps, night, ({ cause }) => cause !== "firmware");
    points.run.push(night * racks + rackNumber);
    points.value.push(rounded(value));
    points.low.push(rounded(value * (1 - spread)));
    points.high.push(rounded(value * (1 + spread)));
    points.reference.push(rounded(reference));
    points.boots.push(9);
    points.outcome += limit === null ? "b" : (higher ? value < limit : value > limit) ? "r" : "p";
  }
  if (limit !== null) points.limit.push([0, limit]);
  const words = metric.replace("_ratio", "  ratio").split("_");
  const unit = metric.split("_").at(-1).split(" ").at(-1);
  const stat = /_(p\d+|mean)_/.exec(metric)?.[1] ?? "";
  return {
    id: `${place.rack}/${place.board}/${place.case_id}/${metric}`, ...place, metric,
    quantity: words.filter((word) => word !== unit && word !== stat).join(" ").replace("  ratio", ""), stat, unit,
    direction: higher ? "higher" : "lower", blocking, points, now: points.run.length - 1,
    levels: [], changes: [], test: "0123456789abcdef",
  };
}

function factor(steps, night, counts) {
  return steps.filter((step) => night >= step.night && counts(step)).reduce((product, { change }) => product * (1 + change), 1);
}
