/* SPDX-License-Identifier: Apache-2.0 */
// What ThreadSanitizer says of the firmware and is no defect on a chip, each with its reason. It is part of a
// build with HIL_SANITIZE=thread.
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void) {
    return
        // Tasks of one core. On a chip a switch of tasks orders what they do; it is no lock that TSan sees.
        "race:partners_work\n"
        "race:keep_time\n"
        // One word that a hook reads before each event, and that is looked at again under the ring's own
        // order.
        "race:trace_is_on\n"
        // Where products go that nobody reads: it makes each multiplication one.
        "race:s_product\n";
}
