#include "sim/fabric_nic.h"

#include <assert.h>
#include <stdlib.h>

/* Flows that share one NIC's link at a time, further messages wait.  A real NIC has more queue
 * pairs at work, but each further flow ties more NICs into one sharing problem, whose cost grows
 * faster than its size.  Direct all-gather over 128 nodes of 8, 130 k messages of 2 MiB +- 2.5 %:
 * 1, 2, 3 in flight keep the NICs 83, 94, 97 % busy and take 0.5, 1.2, 7.1 CPU seconds; 4 take more
 * than 40. */
#define NIC_FLOWS_MAX 2

#define NONE UINT32_MAX

struct nic_message {
    uint32_t pair; /* of the sending NIC */
    uint32_t next; /* of the queue pair, or of the free list */
    uint64_t bytes;
    engine_fn *fn;
    void *arg;
    uint64_t a, b;
};

/* What one NIC has to send to one other. */
struct queue_pair {
    uint32_t dst;
    uint32_t first, last; /* messages; first NONE: empty */
    uint32_t next_ready;
    bool ready; /* in the list of those that may start a message */
    bool busy;  /* ordered, and a message is on its way */
};

struct nic {
    struct queue_pair *pairs;
    uint32_t pair_count, pair_capacity;
    uint32_t first_ready, last_ready; /* pairs; first_ready NONE: empty */
    uint32_t flow_count;
    uint64_t free_ps; /* the next message starts no earlier */
    bool timer;       /* set for free_ps */
};

void nic_set_init(struct nic_set *s, struct engine *e, const struct nic_model *model, uint32_t first_port,
                  uint32_t nic_count)
{
    *s = (struct nic_set){
        .engine = e, .model = *model, .first_port = first_port, .nic_count = nic_count, .first_free = NONE};
    s->nics = calloc(nic_count + 1, sizeof(s->nics[0]));
    assert(s->nics != NULL);
    for (uint32_t i = 0; i < nic_count; i++)
        s->nics[i].first_ready = NONE;
}

void nic_set_fini(struct nic_set *s)
{
    for (uint32_t i = 0; i < s->nic_count; i++)
        free(s->nics[i].pairs);
    free(s->nics);
    free(s->messages);
    *s = (struct nic_set){0};
}

static uint32_t message_new(struct nic_set *s)
{
    if (s->first_free == NONE) {
        uint32_t first = s->message_capacity;
        s->message_capacity = first > 0 ? 2 * first : 256;
        s->messages = realloc(s->messages, s->message_capacity * sizeof(s->messages[0]));
        assert(s->messages != NULL);
        for (uint32_t i = first; i < s->message_capacity; i++)
            s->messages[i].next = i + 1 < s->message_capacity ? i + 1 : NONE;
        s->first_free = first;
    }
    uint32_t index = s->first_free;
    s->first_free = s->messages[index].next;
    return index;
}

static void message_free(struct nic_set *s, uint32_t index)
{
    s->messages[index].next = s->first_free;
    s->first_free = index;
}

/* A NIC has few destinations (a ring: one, direct exchange on a rail: one a node), so they are
 * searched in line. */
static uint32_t pair_find(struct nic *n, uint32_t dst)
{
    for (uint32_t i = 0; i < n->pair_count; i++)
        if (n->pairs[i].dst == dst)
            return i;
    if (n->pair_count == n->pair_capacity) {
        n->pair_capacity = n->pair_capacity > 0 ? 2 * n->pair_capacity : 1;
        n->pairs = realloc(n->pairs, n->pair_capacity * sizeof(n->pairs[0]));
        assert(n->pairs != NULL);
    }
    n->pairs[n->pair_count] = (struct queue_pair){.dst = dst, .first = NONE};
    return n->pair_count++;
}

static void pair_push(struct nic_set *s, struct queue_pair *p, uint32_t message)
{
    s->messages[message].next = NONE;
    if (p->first == NONE)
        p->first = message;
    else
        s->messages[p->last].next = message;
    p->last = message;
}

static uint32_t pair_pop(struct nic_set *s, struct queue_pair *p)
{
    uint32_t message = p->first;

    p->first = s->messages[message].next;
    return message;
}

/* Puts the pair at the end of the turn, if it has anything that may be sent. */
static void pair_make_ready(struct nic *n, uint32_t pair)
{
    struct queue_pair *p = &n->pairs[pair];

    if (p->ready || p->busy || p->first == NONE)
        return;
    p->ready = true;
    p->next_ready = NONE;
    if (n->first_ready == NONE)
        n->first_ready = pair;
    else
        n->pairs[n->last_ready].next_ready = pair;
    n->last_ready = pair;
}

static uint32_t ready_pop(struct nic *n)
{
    uint32_t pair = n->first_ready;

    n->first_ready = n->pairs[pair].next_ready;
    n->pairs[pair].ready = false;
    return pair;
}

static void nic_pump(struct nic_set *s, uint32_t nic);

/* The NIC's link is free again at once, the receiver sees the message one latency later. */
static void message_sent(void *arg, uint64_t nic, uint64_t index)
{
    struct nic_set *s = arg;
    struct nic *n = &s->nics[nic];
    struct nic_message m = s->messages[index];

    message_free(s, (uint32_t)index);
    n->flow_count--;
    n->pairs[m.pair].busy = false;
    pair_make_ready(n, m.pair);
    engine_after(s->engine, s->model.latency_ps, m.fn, m.arg, m.a, m.b);
    nic_pump(s, (uint32_t)nic);
}

static void nic_free(void *arg, uint64_t nic, uint64_t unused)
{
    struct nic_set *s = arg;

    (void)unused;
    s->nics[nic].timer = false;
    nic_pump(s, (uint32_t)nic);
}

static void start_message(struct nic_set *s, uint32_t nic)
{
    struct nic *n = &s->nics[nic];
    uint32_t pair = ready_pop(n);
    struct queue_pair *p = &n->pairs[pair];
    uint32_t message = pair_pop(s, p);

    n->flow_count++;
    n->free_ps = engine_now_ps(s->engine) + s->model.message_ps;
    p->busy = s->model.ordered;
    pair_make_ready(n, pair);
    engine_flow(s->engine, s->first_port + nic, s->first_port + p->dst % s->nic_count, s->messages[message].bytes, 0,
                message_sent, s, nic, message);
}

static void nic_pump(struct nic_set *s, uint32_t nic)
{
    struct nic *n = &s->nics[nic];
    uint64_t now_ps = engine_now_ps(s->engine);

    while (n->first_ready != NONE && n->flow_count < NIC_FLOWS_MAX && n->free_ps <= now_ps)
        start_message(s, nic);
    if (n->first_ready != NONE && n->free_ps > now_ps && !n->timer) {
        n->timer = true;
        engine_after(s->engine, n->free_ps - now_ps, nic_free, s, nic, 0);
    }
}

void nic_send(struct nic_set *s, uint32_t src, uint32_t dst, uint64_t bytes, engine_fn *fn, void *arg, uint64_t a,
              uint64_t b)
{
    assert(src < s->nic_count && src != dst);
    struct nic *n = &s->nics[src];
    uint32_t pair = pair_find(n, dst);
    uint32_t message = message_new(s);

    s->messages[message] = (struct nic_message){.pair = pair, .bytes = bytes, .fn = fn, .arg = arg, .a = a, .b = b};
    pair_push(s, &n->pairs[pair], message);
    pair_make_ready(n, pair);
    nic_pump(s, src);
}
