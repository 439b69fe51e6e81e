#include "core/results/compare.h"

#include <assert.h>
#include <stdlib.h>

static uint64_t find_group(struct compare *c, uint64_t point)
{
    uint64_t g = 0;

    /* Sweeps nest, so neighbours mostly share a group: look at the newest first. */
    for (uint64_t back = c->group_count; back > 0; back--)
        if (point_same_problem(c->points[c->groups[back - 1].first].point, c->points[point].point))
            return back - 1;
    g = c->group_count++;
    c->groups[g] = (struct compare_group){.first = point,
                                          .best = COMPARE_NONE,
                                          .fused = COMPARE_NONE,
                                          .unfused = COMPARE_NONE,
                                          .nccl = COMPARE_NONE,
                                          .streams = COMPARE_NONE};
    return g;
}

static void take_faster(const struct compare *c, uint64_t *best, uint64_t point)
{
    if (*best == COMPARE_NONE || c->times[point].median < c->times[*best].median)
        *best = point;
}

static void enter(struct compare *c, uint64_t point)
{
    struct compare_group *g = &c->groups[c->group_of[point]];
    const struct run_result *r = c->points[point].result;

    if (!r || r->status < 0 || r->sample_count == 0)
        return;
    c->times[point] = stats_of(r->sample_ps, r->sample_count);
    take_faster(c, &g->best, point);
    switch (c->points[point].point->program) {
    case PROGRAM_FUSED: take_faster(c, &g->fused, point); break;
    case PROGRAM_UNFUSED: take_faster(c, &g->unfused, point); break;
    case PROGRAM_NCCL: take_faster(c, &g->nccl, point); break;
    case PROGRAM_STREAMS: take_faster(c, &g->streams, point); break;
    }
}

void compare_create(const struct run_unit *points, uint64_t count, struct compare *out)
{
    *out = (struct compare){.points = points, .count = count};
    out->times = calloc(count + 1, sizeof *out->times);
    out->group_of = calloc(count + 1, sizeof *out->group_of);
    out->groups = calloc(count + 1, sizeof *out->groups);
    assert(out->times && out->group_of && out->groups);
    for (uint64_t i = 0; i < count; i++) {
        out->group_of[i] = find_group(out, i);
        enter(out, i);
    }
}

void compare_destroy(struct compare *c)
{
    free(c->times);
    free(c->group_of);
    free(c->groups);
    *c = (struct compare){0};
}

double compare_ratio(const struct compare *c, uint64_t other, uint64_t point)
{
    if (other == COMPARE_NONE || point == COMPARE_NONE || c->times[point].median == 0)
        return 0;
    return (double)c->times[other].median / (double)c->times[point].median;
}

double compare_speedup(const struct compare *c, uint64_t point)
{
    return compare_ratio(c, c->groups[c->group_of[point]].nccl, point);
}

static const char *failure(enum status st)
{
    switch (st) {
    case ST_WRONG: return "wrong";
    case ST_HANG: return "hang";
    case ST_MEMORY: return "no memory";
    case ST_UNSUPPORTED: return "unsupported";
    default: return "failed";
    }
}

const char *compare_verdict(const struct compare *c, uint64_t point)
{
    const struct run_unit *u = &c->points[point];
    double speedup = compare_speedup(c, point);
    uint64_t best = c->groups[c->group_of[point]].best;

    if (run_unit_skipped(u))
        return "skipped";
    if (!u->result)
        return "not run";
    if (u->result->status < 0)
        return failure(u->result->status);
    if (c->times[point].median == 0)
        return "no time";
    if (c->times[point].median == c->times[best].median)
        return "best";
    return speedup > 0 && speedup < 1 ? "slower" : "ok";
}
