#include "backends/sim/stats.h"

#include <stdio.h>

void stats_open(struct sim *s)
{
    const struct program *p = s->program;
    struct run_result *r = s->result;

    r->crew_count = p->crew_count;
    for (uint32_t i = 0; i < p->crew_count; i++) {
        snprintf(r->crews[i].name, sizeof r->crews[i].name, "%s", p->crews[i].name);
        r->crews[i].workers = p->crews[i].workers;
    }
    r->cause_count = p->flag_group_count + 2;
    for (uint32_t i = 0; i < p->flag_group_count; i++)
        snprintf(r->causes[i], sizeof r->causes[i], "%s", p->flag_groups[i].name);
    snprintf(r->causes[stats_fifo_cause(s)], sizeof r->causes[0], BACKEND_CAUSE_PUTS);
    snprintf(r->causes[stats_store_cause(s)], sizeof r->causes[0], BACKEND_CAUSE_STORE);
}

uint32_t stats_flag_cause(const struct sim *s, uint32_t flag)
{
    return (uint32_t)(program_flag_group(s->program, flag) - s->program->flag_groups);
}

uint32_t stats_fifo_cause(const struct sim *s)
{
    return s->program->flag_group_count;
}

uint32_t stats_store_cause(const struct sim *s)
{
    return s->program->flag_group_count + 1;
}

/* Warm-up epochs are not counted. */
static uint64_t elapsed_ps(struct sim *s, struct worker *w)
{
    uint64_t now = sim_now(s), ps = now - w->since_ps;

    w->since_ps = now;
    return w->id.epoch > s->warmup ? ps : 0;
}

void stats_busy(struct sim *s, struct worker *w)
{
    s->result->crews[w->crew].busy_ps += elapsed_ps(s, w);
}

void stats_waited(struct sim *s, struct worker *w)
{
    s->result->crews[w->crew].waiting_ps[w->cause] += elapsed_ps(s, w);
}

void stats_idle(struct sim *s, struct worker *w)
{
    s->result->crews[w->crew].idle_ps += elapsed_ps(s, w);
}

void stats_close(struct sim *s)
{
    struct run_result *r = s->result;

    r->epochs = s->epochs;
    r->flows = engine_flow_count(s->engine);
    r->link_count = fabric_links(s->fabric, r->links);
    snprintf(r->model, sizeof r->model, "%s", engine_model(s->engine));
}
