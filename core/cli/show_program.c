#include <inttypes.h>

#include "core/cli/show.h"
#include "core/program_print.h"

static void print_buffers(const struct program *p, FILE *f)
{
    fprintf(f, "\nbuffers  (each rank: %" PRIu64 " bytes)\n", program_window_bytes(p));
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        const struct buffer *b = &p->buffers[i];

        fprintf(f, "  %-16s %" PRIu64 " x %" PRIu64 " %s", b->name, b->rows, b->cols, dtype_name(b->dtype));
        fprintf(f, ", depth %" PRIu32 ", %" PRIu64 " bytes\n", b->depth, buffer_bytes(b));
    }
}

/* A group's totals on this rank: one number, or the least and the greatest. */
static void print_totals(const struct program *p, uint32_t rank, const struct flag_group *g, FILE *f)
{
    uint64_t low = UINT64_MAX, high = 0;

    for (uint32_t i = 0; i < g->count; i++) {
        uint64_t total = program_flag_total(p, rank, g->first + i);

        low = total < low ? total : low;
        high = total > high ? total : high;
    }
    if (low >= high)
        fprintf(f, ", total %" PRIu64 " an epoch\n", high);
    else
        fprintf(f, ", totals %" PRIu64 "..%" PRIu64 " an epoch\n", low, high);
}

static void print_flags(const struct program *p, uint32_t rank, FILE *f)
{
    fprintf(f, "\nflags%s\n", p->flag_count == 0 ? ": none" : "");
    for (uint32_t i = 0; i < p->flag_group_count; i++) {
        fprintf(f, "  %-16s %" PRIu32, p->flag_groups[i].name, p->flag_groups[i].count);
        print_totals(p, rank, &p->flag_groups[i], f);
    }
}

static void print_crews(const struct program *p, FILE *f)
{
    fprintf(f, "\ncrews\n");
    for (uint32_t i = 0; i < p->crew_count; i++) {
        const struct crew *c = &p->crews[i];

        fprintf(f, "  %-16s %" PRIu32 " workers drain", c->name, c->workers);
        for (uint32_t q = 0; q < c->queue_count; q++)
            fprintf(f, "%s %s", q ? ", then" : "", p->queues[c->queues[q]].name);
        fprintf(f, "\n");
    }
}

static void print_queue(const struct program *p, uint32_t rank, uint32_t queue, uint64_t tasks, FILE *f)
{
    uint64_t length = program_queue_length(p, rank, queue);
    uint64_t shown = length < tasks ? length : tasks;

    fprintf(f, "\nqueue %s: %" PRIu64 " tasks\n", p->queues[queue].name, length);
    for (uint64_t i = 0; i < shown; i++) {
        struct task t;
        char text[PROGRAM_TASK_TEXT_BYTES];

        program_task(p, rank, queue, i, &t);
        program_print_task(p, rank, queue, i, &t, text, sizeof text);
        fprintf(f, "  %s\n", text);
    }
    if (shown < length)
        fprintf(f, "  ... and %" PRIu64 " more (--tasks N, --tasks all)\n", length - shown);
}

void show_program(const struct program *p, uint32_t rank, uint64_t tasks, FILE *f)
{
    fprintf(f, "%s %s: rank %" PRIu32 " of %" PRIu32 " (node %" PRIu32 ", gpu %" PRIu32 ")\n", p->kernel, p->variant,
            rank, world_ranks(p->world), world_node(p->world, rank), world_gpu(p->world, rank));
    print_buffers(p, f);
    print_flags(p, rank, f);
    print_crews(p, f);
    for (uint32_t q = 0; q < p->queue_count; q++)
        print_queue(p, rank, q, tasks, f);
}
