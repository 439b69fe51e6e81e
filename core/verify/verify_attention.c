/* Coverage of attention: every pair of a query and a key that it sees, exactly once.
 *
 * A task that walks keys [k0, k1) adds the contribution of that range to what its queries hold.  With a causal
 * mask the range is cut behind the last query of the task (program_step() does it); within the range the op
 * itself hides from each query what lies behind it.  So a tile whose last query stands at position p must hold
 * the contributions of exactly [0, p], and then every query of it has met every key it sees once. */
#include "core/attention.h"
#include "core/check.h"
#include "core/verify/verify_coverage.h"

/* `count` rows of keys or values, which must be one head's from `position` on. */
static bool is_run(const struct attention_problem *a, const struct symbol *s, enum attention_side side, uint64_t head,
                   uint64_t position, uint64_t count)
{
    struct attention_place at;

    if (s->tensor != TENSOR_KV || s->col != 0 || s->row >= attention_key_rows(a) * a->seq)
        return false;
    at = attention_key_at(a, s->row);
    return at.side == side && at.head == head && at.position == position && at.left >= count;
}

static bool walk(const struct tracing *x, uint32_t rank, const struct task *t, uint64_t key_head, uint64_t *sum)
{
    const struct attention_problem *a = &verify_global(x)->attention;

    for (uint32_t i = 0; i < program_step_count(t); i++) {
        struct segment s;
        struct operand keys_at, values_at;
        struct symbol keys, values;

        program_step(verify_traced(x), rank, t, i, &s, &keys_at, &values_at);
        if (s.k == 0)
            continue;
        if (!verify_look(x, &keys_at, s.k, t->n, &keys) || !verify_look(x, &values_at, s.k, t->n, &values) ||
            !is_run(a, &keys, SIDE_KEYS, key_head, s.position, s.k) ||
            !is_run(a, &values, SIDE_VALUES, key_head, s.position, s.k))
            return false;
        *sum += verify_contribution(s.position + s.k) - verify_contribution(s.position);
    }
    return true;
}

/* The result so far and its log-sum-exp must be of the same queries and the same keys. */
static bool take_up(const struct tracing *x, const struct task *t, struct symbol *out)
{
    struct symbol before, lse;

    if (t->addend_count == 0)
        return true;
    if (!verify_look(x, &t->addend, t->m, t->n, &before) || !verify_look(x, &t->attention.lse, t->m, 1, &lse) ||
        before.tensor != TENSOR_O || lse.tensor != TENSOR_O || before.row != out->row || lse.row != out->row ||
        before.sum != lse.sum || before.col != 0 || lse.col != 0)
        return false;
    out->sum += before.sum;
    return true;
}

bool verify_attention_result(const struct tracing *x, uint32_t rank, const struct task *t, struct symbol *out)
{
    const struct attention_problem *a = &verify_global(x)->attention;
    struct attention_place at;
    struct symbol q;

    if (a->seq == 0 || t->n != a->head_dim || t->attention.causal != a->causal ||
        !verify_look(x, &t->attention.q, t->m, t->n, &q) || q.tensor != TENSOR_Q || q.col != 0 ||
        q.row >= attention_query_rows(a) * a->seq)
        return false;
    at = attention_query_at(a, q.row);
    if (at.left < t->m || at.position != t->attention.position)
        return false;
    *out = (struct symbol){.tensor = TENSOR_O, .row = q.row};
    return walk(x, rank, t, attention_key_head(a, at.head), &out->sum) && take_up(x, t, out);
}

bool verify_attention_whole(const struct problem *global, uint64_t row, uint64_t rows, uint64_t *sum_out)
{
    const struct attention_problem *a = &global->attention;
    struct attention_place first;

    if (a->seq == 0 || rows == 0 || row >= attention_query_rows(a) * a->seq)
        return false;
    first = attention_query_at(a, row);
    *sum_out = verify_contribution(attention_keys_seen(a, first.position + rows - 1)) - verify_contribution(0);
    return first.left >= rows;
}
