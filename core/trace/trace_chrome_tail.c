#include <inttypes.h>
#include <stdio.h>

#include "core/build.h"
#include "core/trace/trace_chrome.h"

#define SCHEMA 1 /* of docs/trace.md */

static void name_rank(struct chrome *c, uint32_t rank)
{
    char line[2 * THREAD_BYTES];

    snprintf(line, sizeof line,
             "\",\"pid\":%" PRIu32 ",\"name\":\"process_name\",\"args\":{\"name\":\"rank %" PRIu32 ", node %" PRIu32
             " gpu %" PRIu32 "\"}}",
             rank, rank, world_node(c->program->world, rank), world_gpu(c->program->world, rank));
    chrome_event(c, "M");
    trace_file_text(&c->file, line);
    snprintf(line, sizeof line, "\",\"pid\":%" PRIu32 ",\"name\":\"process_labels\",\"args\":{\"labels\":\"%s\"}}",
             rank, c->backend);
    chrome_event(c, "M");
    trace_file_text(&c->file, line);
}

/* "compute 5", or of a folded crew "compute 0 of 123" */
static void name_thread(struct chrome *c, uint32_t rank, uint32_t crew, uint32_t worker)
{
    uint32_t thread = c->crew_first[crew] + worker;
    char line[2 * THREAD_BYTES], folded[24] = "";

    if (c->folded)
        snprintf(folded, sizeof folded, " of %" PRIu32, c->crew_workers[crew]);
    snprintf(line, sizeof line,
             "\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s %" PRIu32
             "%s\"}}",
             rank, thread, c->program->crews[crew].name, worker, folded);
    chrome_event(c, "M");
    trace_file_text(&c->file, line);
}

/* Two series as one counter, where anything changes. */
static void write_counter(struct chrome *c, uint32_t rank, const char *name, const char *a, const char *b,
                          uint32_t series, double scale)
{
    const double *va = c->bins.values[series], *vb = c->bins.values[series + 1];
    uint32_t bins = trace_bins_used(&c->bins, c->end_ps);
    double last_a = 0, last_b = 0;

    for (uint32_t i = 0; i <= bins; i++) {
        double now_a = i < bins ? va[i] * scale : 0, now_b = i < bins ? vb[i] * scale : 0;
        char line[COUNTER_BYTES + 64];

        if (now_a == last_a && now_b == last_b)
            continue;
        chrome_event(c, "C");
        chrome_at(c, rank, 0, i * c->bins.width_ps);
        snprintf(line, sizeof line, ",\"name\":\"%s\",\"args\":{\"%s\":%.5g,\"%s\":%.5g}}", name, a, now_a, b, now_b);
        trace_file_text(&c->file, line);
        last_a = now_a;
        last_b = now_b;
    }
}

static void write_counters(struct chrome *c, uint32_t rank)
{
    double width_ps = (double)c->bins.width_ps;
    uint32_t series = chrome_series(c, rank);

    write_counter(c, rank, "nvlink GB/s", "out", "in", series + TRACE_NVLINK_OUT, 1e3 / width_ps);
    write_counter(c, rank, "nic GB/s", "out", "in", series + TRACE_NIC_OUT, 1e3 / width_ps);
    for (uint32_t crew = 0; c->folded && crew < c->program->crew_count; crew++) {
        char name[64];

        snprintf(name, sizeof name, "%s workers", c->program->crews[crew].name);
        write_counter(c, rank, name, "busy", "waiting", series + TRACE_LINKS + 2 * crew, 1 / width_ps);
    }
}

void chrome_write_ranks(struct chrome *c)
{
    for (uint32_t rank = 0; rank < world_ranks(c->program->world); rank += c->rank_stride) {
        name_rank(c, rank);
        for (uint32_t crew = 0; crew < c->program->crew_count; crew++)
            for (uint32_t w = 0; w < (c->folded ? 1 : c->crew_workers[crew]); w++)
                name_thread(c, rank, crew, w);
        write_counters(c, rank);
    }
}

static void say(char *out, size_t out_bytes, size_t *used, const char *text, uint64_t count, uint64_t of)
{
    int n = snprintf(out + *used, out_bytes - *used, text, count, of);

    *used += n > 0 ? min_u64((uint64_t)n, out_bytes - 1 - *used) : 0;
}

void chrome_describe(struct chrome *c)
{
    uint32_t ranks = world_ranks(c->program->world);
    size_t used = 0;

    if (c->first_epoch > c->told_from)
        say(c->note, sizeof c->note, &used, "the last %" PRIu64 " of %" PRIu64 " epochs; ",
            c->epochs - c->first_epoch + 1, c->epochs);
    if (c->folded)
        say(c->note, sizeof c->note, &used, "one worker a crew, the others as counters; ", 0, 0);
    if (c->rank_stride > 1)
        say(c->note, sizeof c->note, &used, "%" PRIu64 " of %" PRIu64 " ranks; ", chrome_ranks_kept(c), ranks);
    if (c->dropped > 0)
        say(c->note, sizeof c->note, &used, "%" PRIu64 " events did not fit; ", c->dropped, 0);
    if (used > 0)
        c->note[used - 2] = 0;
}

static void member(struct chrome *c, const char *name, const char *text)
{
    trace_file_text(&c->file, ",\"");
    trace_file_text(&c->file, name);
    trace_file_text(&c->file, "\":");
    trace_file_quoted(&c->file, text);
}

static void number(struct chrome *c, const char *name, uint64_t value)
{
    trace_file_text(&c->file, ",\"");
    trace_file_text(&c->file, name);
    trace_file_text(&c->file, "\":");
    trace_file_count(&c->file, value);
}

void chrome_write_metadata(struct chrome *c)
{
    const struct program *p = c->program;

    trace_file_text(&c->file, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"schema\":");
    trace_file_count(&c->file, SCHEMA);
    member(c, "tool", "mkernel");
    member(c, "version", build_version);
    member(c, "commit", build_commit);
    member(c, "backend", c->backend);
    member(c, "kernel", p->kernel);
    member(c, "variant", p->variant);
    number(c, "nodes", p->world.nodes);
    number(c, "gpus_per_node", p->world.gpus_per_node);
    number(c, "epochs", c->epochs);
    number(c, "first_epoch", c->first_epoch);
    number(c, "rank_stride", c->rank_stride);
    number(c, "folded", c->folded);
    number(c, "dropped", c->dropped);
    member(c, "left_out", c->note);
    trace_file_text(&c->file, "}}\n");
}
