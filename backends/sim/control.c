#include "backends/sim/control.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/ops/route.h"
#include "backends/sim/data.h"
#include "core/check.h"
#include "core/route.h"

struct control {
    struct memory memory;
    uint8_t **heads; /* by rank; NULL with data */
};

static bool open_heads(struct sim *s, struct control *c)
{
    c->heads = calloc(s->rank_count, sizeof *c->heads);
    if (!c->heads)
        return false;
    for (uint32_t rank = 0; rank < s->rank_count; rank++) {
        c->heads[rank] = malloc(program_control_bytes(s->program));
        if (!c->heads[rank])
            return false;
        check_poison_control(s->job, c->heads[rank]);
    }
    c->memory = (struct memory){.program = s->program, .windows = c->heads};
    return true;
}

bool control_open(struct sim *s)
{
    if (program_control_bytes(s->program) == 0)
        return true;
    s->control = calloc(1, sizeof *s->control);
    if (!s->control)
        return false;
    if (!s->data)
        return open_heads(s, s->control);
    s->control->memory = *data_memory(s);
    return true;
}

void control_close(struct sim *s)
{
    if (!s->control)
        return;
    for (uint32_t rank = 0; s->control->heads && rank < s->rank_count; rank++)
        free(s->control->heads[rank]);
    free(s->control->heads);
    free(s->control);
    s->control = NULL;
}

void control_begin_epoch(struct sim *s, uint32_t rank)
{
    if (s->control && !s->data)
        check_write_control(s->job, rank, s->ranks[rank].epoch, s->control->heads[rank]);
}

void control_select(const struct sim *s, const struct task_id *id, struct task *t)
{
    if (t->select.mode != SELECT_ALL)
        tile_select(&s->control->memory, id->rank, id->epoch, t);
}

void control_task(const struct sim *s, const struct task_id *id, struct task *out)
{
    program_task(s->program, id->rank, id->queue, id->index, out);
    control_select(s, id, out);
}

bool control_index(const struct sim *s, const struct task_id *id, const struct task *t, uint64_t i, uint64_t *value_out)
{
    uint64_t terms = program_index_terms(t);

    return tile_index(&s->control->memory, id->rank, id->epoch, t, i / terms, i % terms, value_out);
}

static void route(struct sim *s, const struct task_id *id, const struct task *t)
{
    uint64_t dropped = tile_route(&s->control->memory, id->rank, id->epoch, t);
    struct run_result *r = s->result;

    r->rows_dropped += dropped;
    if (dropped == 0 || t->route->drop)
        return;
    s->failed = true;
    r->status = ST_INPUT;
    tile_route_refusal(t, id->rank, id->epoch, dropped, r->report, sizeof r->report);
}

static bool moves_control(const struct sim *s, const struct task *t)
{
    return (t->op == OP_COPY || t->op == OP_PUT) && t->m > 0 && t->n > 0 &&
           buffer_is_control(&s->program->buffers[t->a.buffer]);
}

void control_finish(struct sim *s, const struct task_id *id, const struct task *t)
{
    if (!s->control || s->failed)
        return;
    if (t->op == OP_ROUTE)
        route(s, id, t);
    else if (!s->data && moves_control(s, t))
        tile_move(NULL, &s->control->memory, id->rank, id->epoch, t);
}
