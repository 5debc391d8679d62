/** Lines of a history for the tests in this folder: runs of one case on one board. */

/**
 * @param {number[]} values  publish_latency_p95_us, one a run
 * @param {object} [changes]  to the case: {board, kind, …}; ``first`` is the number of the first run
 */
export function runsOf(values, { limit = 25_000, blocking = true, direction, profile, first = 0, ...place } = {}) {
  return values.map((value, at) => [value, at + first]).map(([value, index]) => ({
    run_id: `run-${index}`,
    started_utc: `2026-11-${String(10 + index).padStart(2, "0")}T10:15:00Z`,
    commit: String(index).repeat(40).slice(0, 40),
    dirty: false,
    rack: "lab",
    ...(profile && { profile }),
    url: "https://github.example/acme/firmware/actions/runs/17",
    cases: [{
      board: "b1", kind: "physical", target: "esp32", case_id: "publish/qos=1", label: "qos=1", ...place,
      metrics: {
        publish_latency_p50_us: { value: value === null ? null : value / 2, outcome: "no-baseline" },
        publish_latency_p95_us: {
          value, limit, blocking, ...(direction && { direction }),
          outcome: value !== null && (direction ? value < limit : value > limit) ? "regressed" : "pass",
        },
      },
    }],
  }));
}
