/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes, in ESP-IDF's words: the harness recognises them on the console. The program then ends by the
 * signal, which the virtual board turns into a reset with the reason PANIC. */
#define _GNU_SOURCE
#include "panic.h"

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include "../kernel/kernel.h"
#include "esp_err.h"
#include "esp_system.h"
#include "sdkconfig.h"
#include "strict.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CRASHES_ARE_REPORTED 1 /* by the sanitizer */
#else
#define CRASHES_ARE_REPORTED 0
#endif

static volatile sig_atomic_t s_panicking;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t bytes = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    ssize_t written = write(STDOUT_FILENO, text, bytes);
    (void)written;
}

static unsigned long address_of(const ucontext_t *context) {
#if defined(__x86_64__)
    return (unsigned long)context->uc_mcontext.gregs[REG_RIP];
#else
    return (unsigned long)context->uc_mcontext.pc;
#endif
}

/* What panic_arch.c of the target's architecture calls exceptions and registers. RISC-V has no exception for
 * a division by zero: the compiler puts an ebreak there. */
static const struct {
    const char *illegal, *divide, *access, *pc, *address;
    bool backtrace; /* printed; otherwise the registers are, after abort() too */
#if CONFIG_IDF_TARGET_ARCH_RISCV
} s_cpu = {"Illegal instruction", "Breakpoint", "Load access fault", "MEPC    ", "MTVAL   ", false};
#else
} s_cpu = {"IllegalInstruction", "IntegerDivideByZero", "LoadStoreError", "PC      ", "EXCVADDR", true};
#endif

/* What a chip whose registers for floating point are saved lazily says of an interrupt that uses them. */
#define COPROCESSOR "Coprocessor exception"

static const char *exception_name(int signal_number, const siginfo_t *info) {
    switch (signal_number) {
    case PANIC_INTERRUPT_WATCHDOG:
        return xPortGetCoreID() == 0 ? "Interrupt wdt timeout on CPU0" : "Interrupt wdt timeout on CPU1";
    case SIGILL:
        return s_cpu.illegal;
    case SIGFPE:
        return info->si_code == FPE_INTDIV ? s_cpu.divide : COPROCESSOR;
    default:
        return s_cpu.access;
    }
}

/* An interrupt's floating point traps where its result is not exact, by the processor's own exceptions.
 * Single precision is what the coprocessor does; double precision is integer code there. */
#if defined(__x86_64__) && !CONFIG_IDF_TARGET_ARCH_RISCV
#define MXCSR_MASKS 0x1f80U
#define MXCSR_FLAGS 0x003fU

static bool is_single_precision(const uint8_t *code) {
    bool scalar_double = false;
    bool packed_double = false;
    for (; *code == 0xf2 || *code == 0xf3 || *code == 0x66 || (*code & 0xf0) == 0x40; code++) {
        scalar_double |= *code == 0xf2;
        packed_double |= *code == 0x66;
    }
    return *code == 0x0f && !scalar_double && !packed_double;
}

/* Where it is, the interrupt goes on without traps until its next service. */
static bool is_harmless_float(ucontext_t *context) {
    const uint8_t *code = (const uint8_t *)(uintptr_t)address_of(context); /* NOLINT */
    const task_t *self = task_self();
    bool allowed =
        !is_single_precision(code) ||
        !strict_is_violated(STRICT_FLOAT_IN_INTERRUPT, code,
                            "floating point in an interrupt at 0x%lx: on this chip a panic (Coprocessor "
                            "exception)",
                            strict_offset(code));
    if (self->isr && allowed) {
        context->uc_mcontext.fpregs->mxcsr |= MXCSR_MASKS;
    }
    return self->isr && allowed;
}

void panic_trap_float(void) {
    if (!CRASHES_ARE_REPORTED) {
        uint32_t mxcsr = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(mxcsr & ~(MXCSR_MASKS | MXCSR_FLAGS));
    }
}
#else
static bool is_harmless_float(ucontext_t *context) {
    (void)context;
    return false;
}

void panic_trap_float(void) {
}
#endif

static void report(int signal_number, const siginfo_t *info, const ucontext_t *context) {
    const task_t *self = task_self();
    int core = (int)xPortGetCoreID();
    bool registers = !s_cpu.backtrace;
    if (signal_number == SIGABRT || signal_number == PANIC_TASK_WATCHDOG) {
        say("\nabort() was called at PC 0x%08lx on core %d\n", address_of(context), core);
    } else if (stack_guard_contains(self, info->si_addr)) {
        say("\n***ERROR*** A stack overflow in task %s has been detected.\n", self->name);
    } else {
        say("\nGuru Meditation Error: Core  %d panic'ed (%s).%s\n", core, exception_name(signal_number, info),
            signal_number == PANIC_INTERRUPT_WATCHDOG ? " " : " Exception was unhandled.");
        registers = true;
    }
    if (registers) {
        say("%s: 0x%08lx  %s: 0x%08lx  task: %s\n", s_cpu.pc, address_of(context), s_cpu.address,
            (unsigned long)(uintptr_t)info->si_addr, self->name);
    }
    if (s_cpu.backtrace) {
        say("\n\nBacktrace: 0x%08lx\n", address_of(context));
    }
    say("\n\nRebooting...\n");
}

static void on_crash(int signal_number, siginfo_t *info, void *context) {
    if (signal_number == SIGFPE && info->si_code != FPE_INTDIV && is_harmless_float(context)) {
        return;
    }
    if (!s_panicking) {
        s_panicking = 1;
        report(signal_number, info, context);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void panic_init(void) {
    if (CRASHES_ARE_REPORTED) {
        return;
    }
    static const int crashes[] = {
        SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, PANIC_INTERRUPT_WATCHDOG, PANIC_TASK_WATCHDOG};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) {
        sigaction(crashes[i], &action, NULL);
    }
}

void panic_task_watchdog(void) {
    raise(PANIC_TASK_WATCHDOG);
    abort();
}

/* assert() of the firmware arrives here instead of in glibc. */
void __assert_fail(const char *assertion, const char *file, unsigned int line, const char *function) {
    fflush(stdout);
    say("\nassert failed: %s %s:%u (%s)\n", function, file, line, assertion);
    abort();
}

static void say_check_failed(esp_err_t rc, const char *file, int line, const char *function,
                             const char *expression, const char *title) {
    fflush(stdout);
    say("%s failed: esp_err_t 0x%x (%s)\nfile: \"%s\" line %d\nfunc: %s\nexpression: %s\n", title,
        (unsigned)rc, esp_err_to_name(rc), file, line, function, expression);
}

void _esp_error_check_failed(esp_err_t rc, const char *file, int line, const char *function,
                             const char *expression) {
    say_check_failed(rc, file, line, function, expression, "ESP_ERROR_CHECK");
    abort();
}

void _esp_error_check_failed_without_abort(esp_err_t rc, const char *file, int line, const char *function,
                                           const char *expression) {
    say_check_failed(rc, file, line, function, expression, "ESP_ERROR_CHECK_WITHOUT_ABORT");
}

void esp_system_abort(const char *details) {
    fflush(stdout);
    say("\n%s\n", details);
    abort();
}
