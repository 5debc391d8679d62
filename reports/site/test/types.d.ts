// SPDX-License-Identifier: Apache-2.0
// What trend.json holds (docs/reference/schema/trend.schema.json), what the page makes of it, and modules without types of their own.

/** Columns over the runs, in time order. */
interface Runs {
  product?: string[]; id: string[]; started_utc: string[]; commit: string[]; dirty: number[]; rack: string[]; trigger: string[];
  suite: string[]; profile: string[]; url: string[]; reported: number[];
}
type Numbers = (number | null)[];
/** Columns over the points of one series, oldest first; limits are steps. */
interface Columns {
  run: number[]; value: Numbers; outcome: string; low?: Numbers; high?: Numbers; reference?: Numbers; boots?: number[];
  limit?: [number, number | null][]; at_least?: number[];
}
/** From one position to another, both inclusive. */
interface Level { from: number; to: number; value: number; low: number | null; high: number | null }
/** Relative: 0.1 is +10 %. */
interface Change {
  event: number; position: number; change: number; low: number | null; high: number | null; of_ratio: boolean;
  before: number | null; after: number | null;
}
interface Series {
  id: string; product?: string; rack: string; board: string; kind: string; simulated: string; target: string; bench: string;
  case_id: string; label: string; metric: string; quantity: string; stat: string; mixed?: boolean; unit: string; direction: string;
  blocking: boolean; profile: string; points: Columns; now: number | null; levels: Level[]; changes: Change[]; test: string;
}
interface TrendEvent {
  cause: string; effect: string; products?: string[]; racks: string[]; boards: string[]; night: string; nights: number;
  state?: string; ended?: string; open_nights?: number; commit?: { title: string; author: string; count: number; diff: string };
  picture?: { series?: number }; change: number | null; low: number | null; high: number | null; of_ratio: boolean; good: string;
  bad: string; conditions: string[]; headline: string; sentence: string; bisect: string; note: string; run: number; series: number[];
}
interface TrendFile {
  schema: number; title: string; remark: string; links: { home: string; tests: string }; runs: Runs; series: Series[];
  events: TrendEvent[]; notes: string[]; dropped_runs: number; details?: Record<string, any>;
}
/** What a run measured in one series; values in the unit of the series. */
interface Point {
  position: number; run: number; value: number | null; outcome: string; low: number | null; high: number | null;
  reference: number | null; limit: number | null; atLeast: boolean;
}
/** Closeness is 1 at the limit, -1 without one. */
interface Rank { broken: boolean; changed: "worse" | "better" | ""; closeness: number }
interface Line { stat: string; series: Series }
/** One quantity of a case on a board; the text filter looks in `text`. */
interface Chart {
  key: string; product: string; rack: string; board: string; kind: string; simulated: string; mixed?: boolean; profile: string;
  target: string; bench: string; case_id: string; label: string; quantity: string; unit: string; lines: Line[]; rank: Rank;
  measuredNow: boolean; text: string;
}
interface Group extends Chart { charts: Chart[]; cases: Chart[][] }
interface Trend extends TrendFile { details: Record<string, any>; charts: Chart[]; keys: Map<string, Chart>; chartOf: Map<Series, Chart> }
/** What the address says; dates as 2026-03-04, "" for no end. */
interface State {
  text: string; product: string; board: string; rack: string; kind: string; target: string; bench: string; stat: string[];
  changed: boolean; broken: boolean; from: string; to: string; event: number | null; chart: string; all: boolean; theme: string;
}
type Update = (changes: Partial<State>, options?: { replace?: boolean }) => void;
interface Drawn extends Line { points: Point[] }
/** A chart on its axes: values times `unit.factor` are drawn; `x` gives the place of a run on its axis. */
interface Drawing {
  runs: number[]; lines: Drawn[]; main: Drawn; unit: { factor: number; symbol: string }; byDate: boolean; quiet: boolean;
  x: (run: number) => number; changes: { line: Line; change: Change; run: number }[];
}

declare module "node:crypto";
declare module "node:fs/promises";
declare module "node:url";
declare module "node:timers/promises" {
  export function setTimeout(delayMs: number): Promise<void>;
}
