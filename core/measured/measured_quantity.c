/* Single quantities, and what values of a machine file they are made of. */
#include <string.h>

#include "core/log.h"
#include "core/measured/measured.h"
#include "core/parse/nearest.h"

#define US(ps) ((double)(ps) / 1e6)

static double launch(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return US(m->host.issue_ps);
}

static double launch_and_wait(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return US(m->host.issue_ps + m->host.launch_ps);
}

static double stream_hop(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return US(m->host.event_ps);
}

static double empty_task(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return US(m->flag.dispatch_ps);
}

static double flag_hop(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return US(m->flag.local_ps);
}

static double task_hop(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return US(m->flag.dispatch_ps + m->flag.local_ps);
}

static double peer_task_hop(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return US(m->flag.dispatch_ps + m->flag.peer_ps);
}

/* One step of one tile, and its result: what a dependent tile takes. */
static double tile_hop(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return US(m->flag.dispatch_ps + m->gemm.fixed_ps + m->gemm.steps[0].step_ps + m->gemm.flush_ps + m->flag.local_ps);
}

static double peer_tile_hop(const struct machine *m, uint64_t bytes)
{
    double tile = tile_hop(m, bytes) - US(m->flag.local_ps);

    return tile + US(m->nvlink.latency_ps + m->flag.peer_ps) + (double)bytes / m->nvlink.rate * 1e6;
}

/* What a task of a chain adds that takes up an earlier one's result, beside its steps. */
static double chained_task(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return US(m->attention.fixed_ps + m->attention.carry_ps);
}

static double both_ways(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return m->nvlink.rate / 1e9;
}

static double reducing_cta(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return m->copy.reduce_rate / 1e9;
}

static double memory_copy(const struct machine *m, uint64_t bytes)
{
    (void)bytes;
    return m->gpu.memory_rate / 1e9;
}

static double engine_copy(const struct machine *m, uint64_t bytes)
{
    return US(m->nvlink.engine_ps) + (double)bytes / m->nvlink.engine_rate * 1e6;
}

static const struct quantity quantities[] = {
    {"launch", "us", launch},                   /* back to back, on one stream */
    {"launch and wait", "us", launch_and_wait}, /* until the host knows that it has ended */
    {"stream hop", "us", stream_hop},           /* by an event */
    {"empty task", "us", empty_task},           /* of one worker, independent */
    {"flag hop", "us", flag_hop},               /* signal to wait, half a ping-pong */
    {"task hop", "us", task_hop},               /* a task that waits for another worker's */
    {"peer task hop", "us", peer_task_hop},     /* the same over NVLink */
    {"tile hop", "us", tile_hop},               /* a GEMM tile of one step that waits for another's */
    {"peer tile hop", "us", peer_tile_hop},     /* the same over NVLink, a tile of so many bytes */
    {"chained task", "us", chained_task},       /* attention: one more in the place of a longer one */
    {"both ways", "GB/s", both_ways},           /* what a GPU sends while it receives as much */
    {"reducing CTA", "GB/s", reducing_cta},     /* read plus written */
    {"memory copy", "GB/s", memory_copy},       /* by all SMs, read plus written */
    {"engine copy", "us", engine_copy},         /* to a peer, of so many bytes */
    {NULL, NULL, NULL},
};

const struct quantity *quantity_find(const char *name)
{
    struct nearest n;
    char guess[128];

    nearest_begin(&n, name);
    for (const struct quantity *q = quantities; q->name; q++) {
        if (strcmp(q->name, name) == 0)
            return q;
        nearest_offer(&n, q->name);
    }
    log_error("no quantity is called \"%.60s\"%s", name, nearest_text(&n, guess, sizeof guess));
    return NULL;
}
