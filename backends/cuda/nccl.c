#include "backends/cuda/nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/symbol.h"

/* Values of its enumerations, which are part of its binary interface. */
#define TYPE_BF16 9
#define OP_SUM 0

static bool find_all(struct nccl *n)
{
    return symbol_find(n->library, "ncclGroupStart", &n->group_start) &&
           symbol_find(n->library, "ncclGroupEnd", &n->group_end) &&
           symbol_find(n->library, "ncclAllGather", &n->all_gather) &&
           symbol_find(n->library, "ncclReduceScatter", &n->reduce_scatter) &&
           symbol_find(n->library, "ncclAllReduce", &n->all_reduce) &&
           symbol_find(n->library, "ncclBroadcast", &n->broadcast) &&
           symbol_find(n->library, "ncclReduce", &n->reduce) && symbol_find(n->library, "ncclSend", &n->send) &&
           symbol_find(n->library, "ncclRecv", &n->receive) &&
           symbol_find(n->library, "ncclCommDestroy", &n->destroy) &&
           symbol_find(n->library, "ncclCommAbort", &n->abort) &&
           symbol_find(n->library, "ncclGetErrorString", &n->error);
}

static bool open_comms(struct nccl *n, uint32_t ranks, char *why, size_t why_bytes)
{
    int (*version)(int *out), (*init)(void **comms, int count, const int *devices), devices[NCCL_RANKS_MAX], result;

    if (!symbol_find(n->library, "ncclGetVersion", &version) || !symbol_find(n->library, "ncclCommInitAll", &init) ||
        !find_all(n)) {
        snprintf(why, why_bytes, "this NCCL lacks a function");
        return false;
    }
    version(&n->version);
    for (uint32_t i = 0; i < ranks; i++)
        devices[i] = (int)i;
    result = init(n->comms, (int)ranks, devices);
    n->ranks = result == 0 ? ranks : 0;
    snprintf(why, why_bytes, "NCCL: %s", result == 0 ? "" : n->error(result));
    return result == 0;
}

bool nccl_open(struct nccl *n, uint32_t ranks, char *why, size_t why_bytes)
{
    memset(n, 0, sizeof *n);
    if (ranks > NCCL_RANKS_MAX) {
        snprintf(why, why_bytes, "%u ranks, at most %d are meant to be in one process", ranks, NCCL_RANKS_MAX);
        return false;
    }
    n->library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        snprintf(why, why_bytes, "NCCL was not found: %s", dlerror());
        return false;
    }
    return open_comms(n, ranks, why, why_bytes);
}

void nccl_abort(struct nccl *n)
{
    for (uint32_t i = 0; i < n->ranks; i++)
        n->abort(n->comms[i]);
    n->ranks = 0;
}

void nccl_close(struct nccl *n)
{
    for (uint32_t i = 0; i < n->ranks; i++)
        n->destroy(n->comms[i]);
    if (n->library)
        dlclose(n->library);
    memset(n, 0, sizeof *n);
}

/* ---- collectives ---- */

static bool is_even(const struct nccl *n, const uint64_t *counts)
{
    for (uint32_t i = 1; i < n->ranks; i++)
        if (counts[i] != counts[0])
            return false;
    return true;
}

/* A call of every rank; the group's end starts them together.  The first error, or "". */
static const char *end_group(struct nccl *n, int result)
{
    int end = n->group_end();

    if (result == 0)
        result = end;
    return result == 0 ? "" : n->error(result);
}

/* What one collective moves: elements [first, first + count) of all, from or to `root` where it has one. */
struct part {
    uint32_t root;
    uint64_t first, count;
};

typedef int call_fn(struct nccl *n, const struct nccl_rank *r, void *comm, const struct part *p);

static int gather(struct nccl *n, const struct nccl_rank *r, void *comm, const struct part *p)
{
    return n->all_gather(r->from, r->to, p->count, TYPE_BF16, comm, r->stream);
}

static int broadcast(struct nccl *n, const struct nccl_rank *r, void *comm, const struct part *p)
{
    return n->broadcast(r->from, (uint16_t *)r->to + p->first, p->count, TYPE_BF16, (int)p->root, comm, r->stream);
}

static int scatter(struct nccl *n, const struct nccl_rank *r, void *comm, const struct part *p)
{
    return n->reduce_scatter(r->from, r->to, p->count, TYPE_BF16, OP_SUM, comm, r->stream);
}

static int reduce(struct nccl *n, const struct nccl_rank *r, void *comm, const struct part *p)
{
    return n->reduce((const uint16_t *)r->from + p->first, r->to, p->count, TYPE_BF16, OP_SUM, (int)p->root, comm,
                     r->stream);
}

static int add_all(struct nccl *n, const struct nccl_rank *r, void *comm, const struct part *p)
{
    return n->all_reduce(r->from, r->to, p->count, TYPE_BF16, OP_SUM, comm, r->stream);
}

static int call_each(struct nccl *n, const struct nccl_rank *ranks, call_fn *call, struct part p)
{
    int result = 0;

    for (uint32_t i = 0; i < n->ranks && result == 0 && p.count > 0; i++)
        result = call(n, &ranks[i], n->comms[i], &p);
    return result;
}

/* By `even`, or rank by rank by `part`. */
static const char *by_parts(struct nccl *n, const struct nccl_rank *ranks, const uint64_t *counts, call_fn *even,
                            call_fn *part)
{
    struct part p = {.count = counts[0]};
    int result = n->group_start();

    if (result == 0 && is_even(n, counts))
        return end_group(n, call_each(n, ranks, even, p));
    for (; p.root < n->ranks && result == 0; p.root++) {
        p.count = counts[p.root];
        result = call_each(n, ranks, part, p);
        p.first += p.count;
    }
    return end_group(n, result);
}

const char *nccl_gather_parts(struct nccl *n, const struct nccl_rank *ranks, const uint64_t *counts)
{
    return by_parts(n, ranks, counts, gather, broadcast);
}

const char *nccl_reduce_parts(struct nccl *n, const struct nccl_rank *ranks, const uint64_t *counts)
{
    return by_parts(n, ranks, counts, scatter, reduce);
}

const char *nccl_reduce_all(struct nccl *n, const struct nccl_rank *ranks, uint64_t count)
{
    int result = n->group_start();

    if (result == 0)
        result = call_each(n, ranks, add_all, (struct part){.count = count});
    return end_group(n, result);
}

/* What rank `here` has for each other one, and they for it. */
static int talk(struct nccl *n, const struct nccl_rank *ranks, uint32_t here, const uint64_t *counts)
{
    const uint16_t *from = ranks[here].from;
    uint16_t *to = ranks[here].to;
    int result = 0;

    for (uint32_t peer = 0; peer < n->ranks && result == 0; peer++) {
        uint64_t out = counts[here * n->ranks + peer], in = counts[peer * n->ranks + here];

        if (out > 0)
            result = n->send(from, out, TYPE_BF16, (int)peer, n->comms[here], ranks[here].stream);
        if (in > 0 && result == 0)
            result = n->receive(to, in, TYPE_BF16, (int)peer, n->comms[here], ranks[here].stream);
        from += out;
        to += in;
    }
    return result;
}

const char *nccl_exchange(struct nccl *n, const struct nccl_rank *ranks, const uint64_t *counts)
{
    int result = n->group_start();

    for (uint32_t i = 0; i < n->ranks && result == 0; i++)
        result = talk(n, ranks, i, counts);
    return end_group(n, result);
}
