/* Proves a program before it runs: no deadlock, no race, every output right, for every timing.
 *
 * What is proved, from which conditions, stands in docs/verifier.md.  In short, over all ranks and over as
 * many epochs as depths and lags require:
 *   bounds     operands inside buffers, targets that the op can reach, crews that fit the machine
 *   flags      declared totals equal what is signalled; epochs of a flag do not mix
 *   deadlock   every task completes, for any number >= 1 of workers per crew with the crew lists as given
 *   races      conflicting accesses are ordered by signal -> wait chains alone
 *   coverage   each output element is written once and holds exactly the sum it should */
#ifndef CORE_VERIFY_VERIFY_H
#define CORE_VERIFY_VERIFY_H

#include <stdint.h>

#include "core/problem.h"
#include "core/program.h"
#include "core/status.h"

#define VERIFY_TEXT_BYTES 8192
#define VERIFY_VIOLATIONS_MAX 8 /* described; the rest is only counted */

struct verify_report {
    uint64_t violations;
    uint64_t tasks;               /* of one epoch, over all ranks */
    uint64_t accesses;            /* distinct ones that were compared */
    uint64_t orderings;           /* pairs that had to be ordered */
    uint32_t epochs;              /* unrolled */
    char text[VERIFY_TEXT_BYTES]; /* a paragraph per violation, for people */
};

/* `global` is the GEMM whose slices the program's outputs must be (kernel->global()); NULL: outputs must be
 * written once, whatever they hold.  `sms`: workers that the machine's GPU can hold.
 * ST_OK: proved.  ST_WRONG: violations, see *r.  ST_MEMORY: too large to verify. */
enum status verify_program(const struct program *p, const struct problem *global, uint64_t sms,
                           struct verify_report *r);

#endif
