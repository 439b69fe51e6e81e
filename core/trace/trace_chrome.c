/* The trace as JSON for Perfetto and chrome://tracing, one event a line; docs/trace.md is its schema.
 *
 * How much is kept is decided at the start, from the number of tasks: all epochs, or the last ones, or of the
 * last one a worker a crew (folded), or that of every so many-th rank.  Whatever the estimate, the file does
 * not grow past its limit. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/backend.h"
#include "core/trace/trace_chrome.h"

/* Sizes that are seen, rounded up. */
#define TASK_BYTES 450 /* a task with its waits and arrows */
#define HEAD_BYTES 8192
#define EVENT_BYTES 400 /* no event is longer */

#define PS_PER_NS 1000

/* ---- what is kept ---- */

static uint32_t series_per_rank(const struct chrome *c)
{
    return TRACE_LINKS + (c->folded ? 2 * c->program->crew_count : 0);
}

/* What is written at the end, whatever happened. */
static uint64_t tail_bytes(const struct chrome *c)
{
    uint64_t threads = 1, counters = 2 + (c->folded ? c->program->crew_count : 0);

    for (uint32_t i = 0; i < c->program->crew_count; i++)
        threads += c->folded ? 1 : c->crew_workers[i];
    return HEAD_BYTES + chrome_ranks_kept(c) * (threads * THREAD_BYTES + counters * TRACE_BINS * COUNTER_BYTES);
}

static uint64_t workers_per_rank(const struct chrome *c)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < c->program->crew_count; i++)
        count += c->crew_workers[i];
    return max_u64(count, 1);
}

/* Of one epoch. */
static uint64_t estimated_bytes(const struct chrome *c)
{
    uint64_t tasks = program_task_count(c->program);

    if (c->folded)
        tasks = ceil_div(tasks * c->program->crew_count, workers_per_rank(c));
    return tasks / c->rank_stride * TASK_BYTES + tail_bytes(c);
}

static void plan(struct chrome *c, uint64_t limit)
{
    uint64_t each, room;

    c->rank_stride = 1;
    c->folded = estimated_bytes(c) > limit;
    while (estimated_bytes(c) > limit && c->rank_stride < world_ranks(c->program->world))
        c->rank_stride *= 2;
    room = limit > tail_bytes(c) ? limit - tail_bytes(c) : 0;
    each = max_u64(estimated_bytes(c) - tail_bytes(c), 1);
    c->first_epoch = c->epochs - min_u64(max_u64(room / each, 1), c->epochs - c->told_from + 1) + 1;
    c->limit_bytes = room;
}

static bool keeps(const struct chrome *c, const struct trace_lane *lane, uint64_t epoch)
{
    return epoch >= c->first_epoch && lane->rank % c->rank_stride == 0 && (!c->folded || lane->worker == 0);
}

static uint32_t thread_of(const struct chrome *c, const struct trace_lane *lane)
{
    return c->crew_first[lane->crew] + (c->folded ? 0 : lane->worker);
}

/* ---- events ---- */

/* Room for one more event, and for the tail? */
static bool admits(struct chrome *c)
{
    if (c->file.written + EVENT_BYTES <= c->limit_bytes)
        return true;
    c->dropped++;
    return false;
}

void chrome_event(struct chrome *c, const char *kind)
{
    if (c->any)
        trace_file_text(&c->file, ",\n");
    trace_file_text(&c->file, "{\"ph\":\"");
    trace_file_text(&c->file, kind);
    c->any = true;
}

void chrome_at(struct chrome *c, uint32_t rank, uint32_t thread, uint64_t ps)
{
    trace_file_text(&c->file, "\",\"pid\":");
    trace_file_count(&c->file, rank);
    trace_file_text(&c->file, ",\"tid\":");
    trace_file_count(&c->file, thread);
    trace_file_text(&c->file, ",\"ts\":");
    trace_file_us(&c->file, ps);
}

/* "gemm #96" */
static void task_name(struct chrome *c, const struct trace_place *p)
{
    trace_file_text(&c->file, ",\"name\":\"");
    trace_file_text(&c->file, op_name(p->op));
    trace_file_text(&c->file, " #");
    trace_file_count(&c->file, p->index);
}

static void place(struct chrome *c, const struct trace_place *p)
{
    trace_file_text(&c->file, ",\"args\":{\"queue\":\"");
    trace_file_text(&c->file, c->program->queues[p->queue].name);
    trace_file_text(&c->file, "\",\"epoch\":");
    trace_file_count(&c->file, p->epoch);
    trace_file_text(&c->file, "}}");
}

static void slice(struct chrome *c, const struct trace_lane *lane, uint64_t begin_ps, uint64_t end_ps)
{
    chrome_event(c, "X");
    chrome_at(c, lane->rank, thread_of(c, lane), begin_ps);
    trace_file_text(&c->file, ",\"dur\":");
    trace_file_us(&c->file, (end_ps / PS_PER_NS - begin_ps / PS_PER_NS) * PS_PER_NS); /* so that slices nest */
}

/* ---- the sink ---- */

uint32_t chrome_series(const struct chrome *c, uint32_t rank)
{
    return rank / c->rank_stride * series_per_rank(c);
}

static uint64_t begin(struct trace *t, uint64_t first, uint64_t epochs, const uint32_t crew_workers[PROGRAM_CREWS_MAX])
{
    struct chrome *c = (struct chrome *)t;
    uint64_t limit = c->limit_bytes;
    uint32_t thread = 1;

    c->epochs = epochs;
    c->told_from = first;
    for (uint32_t i = 0; i < c->program->crew_count; i++)
        c->crew_workers[i] = crew_workers[i];
    plan(c, limit);
    for (uint32_t i = 0; i < c->program->crew_count; i++) {
        c->crew_first[i] = thread;
        thread += c->folded ? 1 : crew_workers[i];
    }
    trace_bins_init(&c->bins, chrome_ranks_kept(c) * series_per_rank(c));
    return c->first_epoch;
}

/* Worker time by crew, of all workers, where only one of them is shown. */
static void count(struct chrome *c, const struct trace_lane *lane, uint32_t which, double sign, uint64_t begin_ps,
                  uint64_t end_ps)
{
    if (!c->folded || lane->rank % c->rank_stride != 0)
        return;
    trace_bins_add(&c->bins, chrome_series(c, lane->rank) + TRACE_LINKS + 2 * lane->crew + which,
                   sign * (double)(end_ps - begin_ps), begin_ps, end_ps);
}

static void task(struct trace *t, const struct trace_task *x)
{
    struct chrome *c = (struct chrome *)t;

    c->end_ps = max_u64(c->end_ps, x->end_ps);
    count(c, &x->lane, 0, 1, x->begin_ps, x->end_ps);
    if (!keeps(c, &x->lane, x->at.epoch) || !admits(c))
        return;
    slice(c, &x->lane, x->begin_ps, x->end_ps);
    task_name(c, &x->at);
    trace_file_text(&c->file, "\",\"cat\":\"task\"");
    place(c, &x->at);
}

/* Both ends lie just inside the slices that they belong to. */
static uint64_t just_before(uint64_t ps)
{
    return ps > PS_PER_NS ? ps - PS_PER_NS : 0;
}

/* "ready[4]", as program_print_flag() writes it, in a tenth of the time; or the cause. */
static void wait_name(struct chrome *c, const struct trace_wait *x)
{
    const struct flag_group *g;

    if (x->flag == NO_FLAG) {
        trace_file_text(&c->file, x->cause);
        return;
    }
    g = program_flag_group(c->program, x->flag);
    assert(g);
    trace_file_text(&c->file, g->name);
    trace_file_text(&c->file, "[");
    trace_file_count(&c->file, x->flag - g->first);
    trace_file_text(&c->file, "]");
}

static void arrow(struct chrome *c, const struct trace_wait *x)
{
    if (!x->known || !keeps(c, &x->from, x->at.epoch) || !admits(c))
        return;
    for (int end = 0; end < 2; end++) {
        const struct trace_lane *lane = end ? &x->lane : &x->from;

        chrome_event(c, end ? "f" : "s");
        chrome_at(c, lane->rank, thread_of(c, lane), just_before(end ? x->end_ps : x->from_ps));
        trace_file_text(&c->file, ",\"id\":");
        trace_file_count(&c->file, c->arrows);
        if (end)
            trace_file_text(&c->file, ",\"bp\":\"e\"");
        trace_file_text(&c->file, ",\"cat\":\"signal\",\"name\":\"");
        wait_name(c, x);
        trace_file_text(&c->file, "\"}");
    }
    c->arrows++;
}

/* chrome://tracing colours by these; Perfetto by the name without its numbers, which is the cause, too. */
static const char *const colours[] = {
    "thread_state_iowait",
    "rail_response",
    "rail_animation",
    "rail_idle",
    "rail_load",
    "cq_build_running",
    "yellow",
    "olive",
    "bad",
    "terrible",
    "grey",
    "startup",
    "heap_dump_stack_frame",
    "vsync_highlight_color",
};

#define COLOURS (sizeof colours / sizeof colours[0])

static uint32_t colour_of(const struct chrome *c, const struct trace_wait *x)
{
    if (x->flag == NO_FLAG)
        return PROGRAM_FLAG_GROUPS_MAX;
    return (uint32_t)(program_flag_group(c->program, x->flag) - c->program->flag_groups);
}

static void wait(struct trace *t, const struct trace_wait *x)
{
    struct chrome *c = (struct chrome *)t;

    c->end_ps = max_u64(c->end_ps, x->end_ps);
    count(c, &x->lane, 1, 1, x->begin_ps, x->end_ps);
    if (x->inside)
        count(c, &x->lane, 0, -1, x->begin_ps, x->end_ps);
    if (!keeps(c, &x->lane, x->at.epoch) || !admits(c))
        return;
    slice(c, &x->lane, x->begin_ps, x->end_ps);
    trace_file_text(&c->file, ",\"name\":\"wait ");
    wait_name(c, x);
    trace_file_text(&c->file, "\",\"cat\":\"wait\",\"cname\":\"");
    trace_file_text(&c->file, colours[colour_of(c, x) % COLOURS]);
    trace_file_text(&c->file, "\"");
    place(c, &x->at);
    arrow(c, x);
}

static void flight(struct trace *t, const struct trace_flight *x)
{
    struct chrome *c = (struct chrome *)t;

    c->end_ps = max_u64(c->end_ps, x->end_ps);
    if (!keeps(c, &x->lane, x->at.epoch) || !admits(c))
        return;
    for (int end = 0; end < 2; end++) {
        chrome_event(c, end ? "e" : "b");
        chrome_at(c, x->lane.rank, thread_of(c, &x->lane), end ? x->end_ps : x->begin_ps);
        trace_file_text(&c->file, ",\"id\":");
        trace_file_count(&c->file, c->flights);
        trace_file_text(&c->file, ",\"cat\":\"flight\"");
        task_name(c, &x->at);
        trace_file_text(&c->file, "\"");
        place(c, &x->at);
    }
    c->flights++;
}

static void use(struct trace *t, const struct trace_use *x)
{
    struct chrome *c = (struct chrome *)t;

    c->end_ps = max_u64(c->end_ps, x->end_ps);
    if (x->rank % c->rank_stride == 0)
        trace_bins_add(&c->bins, chrome_series(c, x->rank) + x->link, (double)x->bytes, x->begin_ps, x->end_ps);
}

static void lost(struct trace *t, uint64_t events)
{
    ((struct chrome *)t)->dropped += events;
}

static const struct trace_ops chrome_ops = {
    .begin = begin,
    .task = task,
    .wait = wait,
    .flight = flight,
    .use = use,
    .lost = lost,
};

static enum status chrome_open(const struct job *job, const char *backend, const char *path, uint64_t limit_bytes,
                               struct trace **out)
{
    struct chrome *c = calloc(1, sizeof *c);
    enum status st;

    assert(c);
    c->head.ops = &chrome_ops;
    c->program = job->program;
    c->backend = backend;
    c->limit_bytes = limit_bytes;
    st = trace_file_open(&c->file, path);
    if (st < 0) {
        free(c);
        return st;
    }
    trace_file_text(&c->file, "{\"traceEvents\":[\n");
    *out = &c->head;
    return ST_OK;
}

static enum status chrome_close(struct trace *t, bool keep, struct trace_result *out)
{
    struct chrome *c = (struct chrome *)t;
    char path[RESULT_PATH_BYTES];
    enum status st;

    keep = keep && c->epochs > 0; /* else the run never began */
    if (keep) {
        chrome_describe(c);
        chrome_write_ranks(c);
        chrome_write_metadata(c);
    }
    st = trace_file_close(&c->file, keep, path);
    snprintf(out->path, sizeof out->path, "%.*s", (int)sizeof out->path - 1, path);
    snprintf(out->note, sizeof out->note, "%s", c->note);
    trace_bins_fini(&c->bins);
    free(c);
    return st;
}

const struct trace_format trace_chrome = {.name = "chrome", .open = chrome_open, .close = chrome_close};
