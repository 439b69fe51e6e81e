#include "maxmin_oracle.h"

#include <math.h>
#include <string.h>

static bool active(const struct oracle_flow *f, double now)
{
    return f->start <= now && f->end < 0;
}

/* What each link could give to each of its flows that have no rate yet. */
static double fair_share(const double *left, const uint32_t *users, uint32_t link)
{
    return users[link] > 0 ? left[link] / users[link] : INFINITY;
}

static double flow_limit(const struct oracle_flow *f, const double *left, const uint32_t *users)
{
    double limit = f->rate_bound > 0 ? f->rate_bound : INFINITY;

    for (uint32_t i = 0; i < f->link_count; i++)
        limit = fmin(limit, fair_share(left, users, f->links[i]));
    return limit;
}

/* Progressive filling: the flow with the lowest limit gets just that, then the others see what is
 * left. */
static void share(const double *link_rates, uint32_t link_count, struct oracle_flow *flows, uint32_t flow_count,
                  double now)
{
    double left[ORACLE_LINKS_MAX];
    uint32_t users[ORACLE_LINKS_MAX] = {0};

    memcpy(left, link_rates, link_count * sizeof left[0]);
    for (uint32_t i = 0; i < flow_count; i++) {
        flows[i].fixed = !active(&flows[i], now);
        for (uint32_t k = 0; !flows[i].fixed && k < flows[i].link_count; k++)
            users[flows[i].links[k]]++;
    }
    for (;;) {
        struct oracle_flow *lowest = NULL;
        for (uint32_t i = 0; i < flow_count; i++) {
            if (flows[i].fixed)
                continue;
            flows[i].rate = flow_limit(&flows[i], left, users);
            if (lowest == NULL || flows[i].rate < lowest->rate)
                lowest = &flows[i];
        }
        if (lowest == NULL)
            return;
        lowest->fixed = true;
        for (uint32_t k = 0; k < lowest->link_count; k++) {
            left[lowest->links[k]] -= lowest->rate;
            users[lowest->links[k]]--;
        }
    }
}

/* The next start or end; INFINITY when there is none. */
static double next_event(const struct oracle_flow *flows, uint32_t flow_count, double now)
{
    double next = INFINITY;

    for (uint32_t i = 0; i < flow_count; i++) {
        if (active(&flows[i], now))
            next = fmin(next, now + flows[i].left / flows[i].rate);
        else if (flows[i].start > now)
            next = fmin(next, flows[i].start);
    }
    return next;
}

static void move_bytes(struct oracle_flow *flows, uint32_t flow_count, double now, double next)
{
    for (uint32_t i = 0; i < flow_count; i++) {
        if (!active(&flows[i], now))
            continue;
        double moved = flows[i].rate * (next - now);
        flows[i].left -= moved;
        if (flows[i].left <= flows[i].bytes * 1e-12)
            flows[i].end = next;
    }
}

void oracle_run(const double *link_rates, uint32_t link_count, struct oracle_flow *flows, uint32_t flow_count)
{
    double now = 0;

    for (uint32_t i = 0; i < flow_count; i++) {
        flows[i].left = flows[i].bytes;
        flows[i].end = -1;
    }
    for (;;) {
        share(link_rates, link_count, flows, flow_count, now);
        double next = next_event(flows, flow_count, now);
        if (isinf(next))
            return;
        move_bytes(flows, flow_count, now, next);
        now = next;
    }
}
