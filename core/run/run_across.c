#include "core/run/run_across.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/child.h"
#include "core/clock.h"
#include "core/run/relay.h"
#include "core/world.h"

#define POLL_MS 1
#define FAILED_GRACE_NS 2000000000u /* that a child has to end by itself once another node's has failed */

/* ---- one node's part ---- */

struct part {
    const struct run_unit *unit;
    struct relay relay;
};

static void run_part(void *arg, struct run_result *r)
{
    struct part *p = arg;
    struct node_link link = relay_link(&p->relay);

    run_unit_execute(p->unit, &link, r);
}

/* Until the child is gone. */
static void attend(struct part *p, struct child *c, const struct run_config *config)
{
    bool done = false;

    while (!done) {
        struct pollfd fd = {.fd = c->pipe, .events = POLLIN};
        int ready = poll(&fd, 1, POLL_MS);

        relay_step(&p->relay);
        if (!c->asked &&
            (*config->interrupted || (p->relay.failed_ns && clock_now_ns() - p->relay.failed_ns > FAILED_GRACE_NS)))
            child_stop(c);
        if (ready > 0 || clock_now_ns() >= c->deadline_ns)
            done = child_step(c);
    }
}

/* Not from outside, but because another node has failed, which says why. */
static void say_stopped(struct run_result *mine)
{
    mine->status = ST_IO;
    if (mine->report[0] == 0)
        snprintf(mine->report, sizeof mine->report, "stopped, because another node has failed");
}

static enum status run_here(struct nodes *n, const struct run_unit *u, const struct run_config *config,
                            struct run_result *mine)
{
    struct part p = {.unit = u};
    struct child c;
    enum status st = relay_open(&p.relay, n);

    if (st >= 0)
        st = child_start(&c, run_part, &p, config->timeout_ns, mine);
    relay_forked(&p.relay);
    if (st >= 0)
        attend(&p, &c, config);
    else
        mine->status = st;
    if (mine->status == ST_INTERRUPTED && !*config->interrupted)
        say_stopped(mine);
    if (mine->status < 0) {
        char text[RELAY_TEXT_BYTES];

        snprintf(text, sizeof text, "%s: %.200s", status_text(mine->status), mine->report);
        relay_fail(&p.relay, text);
    }
    relay_close(&p.relay);
    return ST_OK;
}

/* ---- all nodes' results ---- */

static void merge_crews(struct run_result *into, const struct run_result *from)
{
    for (uint32_t c = 0; c < from->crew_count; c++) {
        into->crews[c].busy_ps += from->crews[c].busy_ps;
        into->crews[c].idle_ps += from->crews[c].idle_ps;
        for (uint32_t i = 0; i < from->cause_count; i++)
            into->crews[c].waiting_ps[i] += from->crews[c].waiting_ps[i];
    }
}

static void merge(struct run_result *into, const struct run_result *from)
{
    into->status = status_worse(into->status, from->status);
    into->sample_count = (uint32_t)min_u64(into->sample_count, from->sample_count);
    for (uint32_t i = 0; i < into->sample_count; i++)
        into->sample_ps[i] = max_u64(into->sample_ps[i], from->sample_ps[i]);
    into->tasks += from->tasks;
    into->puts += from->puts;
    into->put_bytes += from->put_bytes;
    into->put_control_bytes += from->put_control_bytes;
    into->rows_dropped += from->rows_dropped;
    into->elements_checked += from->elements_checked;
    into->elements_wrong += from->elements_wrong;
    into->proxy.depth_sum += from->proxy.depth_sum;
    into->proxy.depth_max = max_u64(into->proxy.depth_max, from->proxy.depth_max);
    histogram_merge(&into->proxy.latency, &from->proxy.latency);
    into->cpu_seconds += from->cpu_seconds;
    into->peak_bytes += from->peak_bytes;
    merge_crews(into, from);
}

/* What several say in the same words is said once. */
static void add_report(const struct nodes *n, uint32_t node, const struct run_result *from, struct run_result *into)
{
    size_t used = strlen(into->report);

    if (from->report[0] && !strstr(into->report, from->report))
        snprintf(into->report + used, sizeof into->report - used, "%snode %u on %s: %s", used ? "\n" : "", node,
                 n->hosts[node], from->report);
}

/* The worst node speaks first. */
static void merge_all(const struct nodes *n, const struct run_result *all, struct run_result *out)
{
    *out = all[0];
    for (uint32_t i = 1; i < n->count; i++)
        merge(out, &all[i]);
    out->report[0] = 0;
    for (uint32_t i = 0; i < n->count; i++)
        if (all[i].status == out->status)
            add_report(n, i, &all[i], out);
    for (uint32_t i = 0; i < n->count; i++)
        if (all[i].status != out->status)
            add_report(n, i, &all[i], out);
}

static enum status run_one(struct nodes *n, struct run_unit *u, const struct run_config *config)
{
    struct run_result *all = calloc(n->count, sizeof *all), *mine = calloc(1, sizeof *mine);
    enum status st;

    assert(all && mine);
    st = run_here(n, u, config, mine);
    if (st >= 0)
        st = nodes_gather(n, mine, sizeof *mine, all);
    if (st >= 0) {
        u->result = calloc(1, sizeof *u->result);
        assert(u->result);
        merge_all(n, all, u->result);
        st = u->result->status == ST_INTERRUPTED ? ST_INTERRUPTED : ST_OK;
    }
    free(all);
    free(mine);
    return st;
}

enum status run_units_across(struct nodes *n, struct run_unit *units, uint64_t count, const struct run_config *config)
{
    enum status st = ST_OK;

    n->timeout_ns = config->timeout_ns + NODES_EXTRA_NS;
    for (uint64_t i = 0; i < count && st >= 0; i++) {
        if (!run_unit_skipped(&units[i]))
            st = run_one(n, &units[i], config);
        if (config->progress)
            config->progress(config->arg, i + 1, count);
    }
    return st;
}
