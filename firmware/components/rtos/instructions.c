/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/instructions.h"

#include <stdbool.h>

#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

#if __riscv

enum { ROUNDS = 1000, INSTRUCTIONS_A_ROUND = 2, AGAIN = 16 };

static portMUX_TYPE s_lock = portMUX_INITIALIZER_UNLOCKED;

uint64_t __attribute__((noinline)) rtos_instructions_read(void) {
    uint32_t high, low, again;
    do { /* minstreth, minstret: their names are an extension's, which not each assembler takes for granted */
        __asm__ volatile("csrr %0, 0xb82\n csrr %1, 0xb02\n csrr %2, 0xb82"
                         : "=r"(high), "=r"(low), "=r"(again));
    } while (high != again);
    return (uint64_t)high << 32 | low;
}

/* A core without the counter takes reading it for an illegal instruction: for that one moment the trap leads
 * to four instructions that skip what trapped and what says that it did not. */
static bool has_counter(void) {
    uint32_t found, status, vector, scratch;
    __asm__ volatile(
        "  csrrci %[status], mstatus, 8\n" /* no interrupt comes in between */
        "  la %[scratch], 1f\n"
        "  ori %[scratch], %[scratch], 1\n"
        "  csrrw %[vector], mtvec, %[scratch]\n"
        "  li %[found], 0\n"
        "  .option push\n"
        "  .option norvc\n"
        "  csrr %[scratch], 0xb02\n"
        "  addi %[found], zero, 1\n"
        "  j 2f\n"
        "  .balign 256\n" /* as mtvec wants it */
        "1: csrr %[scratch], mepc\n"
        "  addi %[scratch], %[scratch], 8\n"
        "  csrw mepc, %[scratch]\n"
        "  mret\n"
        "2:\n"
        "  .option pop\n"
        "  csrw mtvec, %[vector]\n"
        "  andi %[status], %[status], 8\n"
        "  csrs mstatus, %[status]\n"
        : [found] "=&r"(found), [status] "=&r"(status), [vector] "=&r"(vector), [scratch] "=&r"(scratch)
        :
        : "memory");
    return found != 0;
}

/* Not inlined: around each call the compiler would put other instructions. */
static uint64_t __attribute__((noinline)) steps_of(uint32_t rounds) {
    uint64_t begin = rtos_instructions_read();
    __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(rounds));
    return rtos_instructions_read() - begin;
}

/* What ROUNDS rounds more cost, or 0 where it is not the same each time: then it counts something else. */
static uint64_t steps_of_rounds(void) {
    uint64_t steps = steps_of(2 * ROUNDS) - steps_of(ROUNDS);
    for (int i = 0; i < AGAIN; i++) {
        if (steps_of(2 * ROUNDS) - steps_of(ROUNDS) != steps) {
            return 0;
        }
    }
    return steps;
}

void rtos_instructions_spin(rtos_spin_t *spin) {
    uint32_t value;
    __asm__ volatile("1: lw %0, 0(%1)\n"
                     "   addi %0, %0, 1\n"
                     "   sw %0, 0(%1)\n"
                     "   lw %0, 0(%2)\n"
                     "   beqz %0, 1b"
                     : "=&r"(value)
                     : "r"(&spin->rounds), "r"(&spin->stop)
                     : "memory");
}

static bool calibrate(uint32_t *ticks) {
    const uint32_t instructions = ROUNDS * INSTRUCTIONS_A_ROUND;
    if (!has_counter()) {
        return false;
    }
    portENTER_CRITICAL(&s_lock); /* an interrupt has instructions of its own */
    uint64_t steps = steps_of_rounds();
    portEXIT_CRITICAL(&s_lock);
    if (steps == 0 || steps % instructions != 0) {
        return false;
    }
    *ticks = (uint32_t)(steps / instructions);
    return true;
}

#else

uint64_t rtos_instructions_read(void) {
    return 0;
}

void rtos_instructions_spin(rtos_spin_t *spin) {
    while (spin->stop == 0) {
        spin->rounds++;
    }
}

static bool calibrate(uint32_t *ticks) {
    (void)ticks;
    return false;
}

#endif

esp_err_t rtos_instructions_calibrate(uint32_t *ticks, bench_samples_t *samples) {
    if (!calibrate(ticks)) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
                          "this board counts no instructions: it takes a RISC-V chip in QEMU with -icount");
    }
    bench_environment_int(samples, "instruction_ticks", *ticks);
    return ESP_OK;
}
