#include "late_puts.h"

#include "script.h"

uint64_t late_puts_elements = 1 << 21;

static struct problem same_problem(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static enum status emit(const struct problem *problem, struct world world, const struct machine *m, enum form form,
                        const void *params, struct program *p, struct complaint *c)
{
    uint32_t queue;

    (void)problem, (void)m, (void)form, (void)params, (void)c;
    script_init(p, world);
    script_buffer(p, "bytes", 1, late_puts_elements, 1);
    program_add_flags(p, "landed", LATE_PUTS);
    queue = script_queue_and_crew(p, "send");
    for (uint32_t i = 0; i < LATE_PUTS; i++) {
        struct task *t = script_task(p, 0, queue, OP_PUT, 1, late_puts_elements);

        t->a = script_rows(p, 0, 0, 0);
        task_store_to(t, script_rows(p, 1, 0, 0));
        task_signal(t, 1, i, 1);
    }
    return ST_OK;
}

static const struct option no_options[] = {{0}};

const struct kernel late_puts_kernel = {
    .name = "late puts", .options = no_options, .global = same_problem, .emit = emit};
