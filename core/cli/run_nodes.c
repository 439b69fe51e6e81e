#include "core/cli/run_nodes.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/log.h"

static enum status check_world(const struct scenario *s, uint32_t found)
{
    for (uint64_t i = 0; i < s->point_count; i++) {
        struct complaint c;

        if (s->points[i].world.nodes == found)
            continue;
        complain(&c, "nodes",
                 "%" PRIu32 " in the scenario, but %" PRIu32 " processes were started, and there is one a node",
                 s->points[i].world.nodes, found);
        scenario_complain(s, &s->points[i], &c);
        return ST_INPUT;
    }
    return ST_OK;
}

static enum status check_backend(const struct backend *b, uint32_t found)
{
    if (b->per_node)
        return ST_OK;
    log_error("backend %s runs all nodes in one process, but %" PRIu32
              " were started: start one, or take --backend cpu or cuda",
              b->name, found);
    return ST_INPUT;
}

enum status run_nodes_check(const struct scenario *s, const struct nodes *n)
{
    if (n->count == 1)
        return ST_OK;
    TRY(check_backend(s->backend, n->count));
    if (s->check.wanted)
        TRY(check_backend(s->check.backend, n->count));
    return check_world(s, n->count);
}

/* ---- the same scenario ---- */

static void hash_text(uint64_t *hash, const char *text)
{
    for (; *text; text++)
        *hash = (*hash ^ (uint8_t)*text) * 0x100000001b3u; /* FNV-1a */
    *hash = (*hash ^ 0xff) * 0x100000001b3u;
}

static void hash_key(void *hash, const char *key, const char *value)
{
    hash_text(hash, key);
    hash_text(hash, value);
}

static uint64_t scenario_hash(const struct scenario *s)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (uint64_t i = 0; i < s->point_count; i++)
        scenario_point_keys(s, &s->points[i], hash_key, &hash);
    return hash;
}

enum status run_nodes_compare(const struct scenario *s, struct nodes *n)
{
    uint64_t *all = calloc(n->count, sizeof *all), mine = scenario_hash(s);
    enum status st = all ? nodes_gather(n, &mine, sizeof mine, all) : ST_MEMORY;

    for (uint32_t i = 1; i < n->count && st >= 0; i++)
        if (all[i] != all[0]) {
            log_error("%s: node %" PRIu32 " on %s reads another scenario than node 0 on %s", s->path, i, n->hosts[i],
                      n->hosts[0]);
            st = ST_INPUT;
        }
    free(all);
    return st;
}
