/* SPDX-License-Identifier: Apache-2.0 */
/* Task stacks: what the task asked for plus room for the host's libraries, painted, with a guard page.
 * x86 code and glibc need far more stack than the chip's, so the mark is counted against the size asked for
 * but nothing breaks when the count goes past it. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "kernel.h"

#define PAINT 0xa5
#define PAGE_BYTES 4096U
#define SIGNAL_STACK_BYTES (16U * 1024U)
#if defined(__SANITIZE_THREAD__) /* keeps its thread-local data, a megabyte, on the stack */
#define HOST_EXTRA_BYTES (2U * 1024U * 1024U)
#else
#define HOST_EXTRA_BYTES (256U * 1024U)
#endif

bool stack_map(task_t *task, uint32_t stack_bytes) {
    size_t bytes = (stack_bytes + HOST_EXTRA_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    size_t mapped = SIGNAL_STACK_BYTES + PAGE_BYTES + bytes;
    uint8_t *memory =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    task->stack = memory + SIGNAL_STACK_BYTES + PAGE_BYTES;
    task->stack_mapped_bytes = bytes;
    task->stack_bytes = stack_bytes;
    mprotect(memory + SIGNAL_STACK_BYTES, PAGE_BYTES, PROT_NONE);
    memset(task->stack, PAINT, bytes);
    return true;
}

void stack_unmap(task_t *task) {
    if (task->stack != NULL) {
        munmap(task->stack - PAGE_BYTES - SIGNAL_STACK_BYTES,
               SIGNAL_STACK_BYTES + PAGE_BYTES + task->stack_mapped_bytes);
        task->stack = NULL;
    }
}

/* The panic handler needs a stack of its own to report that the task's is used up. */
void stack_use_signal_stack(const task_t *task, stack_t *before) {
    const stack_t signal_stack = {.ss_sp = task->stack - PAGE_BYTES - SIGNAL_STACK_BYTES,
                                  .ss_size = SIGNAL_STACK_BYTES};
    sigaltstack(&signal_stack, before);
}

bool stack_guard_contains(const task_t *task, const void *address) {
    const uint8_t *byte = address;
    return task->stack != NULL && byte >= task->stack - PAGE_BYTES && byte < task->stack;
}

/* The stack belongs to a running thread and holds its sanitizers' red zones. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static const uint8_t *
lowest_used(const uint8_t *byte, const uint8_t *end) {
    while (byte < end && *(const volatile uint8_t *)byte == PAINT) {
        byte++;
    }
    return byte;
}

size_t stack_high_water_mark(const task_t *task) {
    if (task->stack == NULL || task->stack_entry == NULL) {
        return task->stack_bytes;
    }
    size_t used = (size_t)(task->stack_entry - lowest_used(task->stack, task->stack_entry));
    return used < task->stack_bytes ? task->stack_bytes - used : 0;
}
