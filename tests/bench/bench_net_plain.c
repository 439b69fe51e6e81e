/* The least one can write with libfabric; see bench_net.h. */
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/net/ofi_fabric.h"
#include "backends/net/transports.h"
#include "bench_net.h"
#include "core/clock.h"

struct plain {
    struct endpoint e; /* only for what ofi_fabric_open() asks of one */
    struct ofi_fabric f;
    fi_addr_t peer;
    uint64_t to, key;
    uint8_t *window;
    uint64_t remote; /* writes that have arrived here */
    uint64_t sent;   /* own ones completed */
};

struct plain_address {
    uint8_t name[128];
    uint64_t base, key;
};

static void plain_open(struct plain *p, struct bootstrap *b, const struct bench *bench)
{
    struct ofi_options o;
    struct plain_address mine = {.base = 0}, all[2];
    size_t bytes = sizeof mine.name;
    uint64_t window_bytes = (uint64_t)BENCH_BYTES * BENCH_DEPTH;

    memset(p, 0, sizeof *p);
    option_defaults(ofi_transport.options, &o);
    if (strncmp(bench->setting.options, "provider=", 9) == 0)
        snprintf(o.provider, sizeof o.provider, "%s", bench->setting.options + 9);
    p->window = mmap(NULL, window_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(p->window != MAP_FAILED, "no memory");
    memset(p->window, 1, window_bytes);
    p->e.transport = &ofi_transport;
    p->e.config = (struct endpoint_config){
        .peers = 2, .depth = BENCH_DEPTH, .window = {.base = p->window, .bytes = window_bytes}};
    must(ofi_fabric_open(&p->e, &o, &p->f) >= 0, "%s", p->e.error);
    must(fi_getname(&p->f.ep->fid, mine.name, &bytes) == 0, "fi_getname");
    mine.base = p->e.self.window_base;
    mine.key = p->e.self.window_key;
    must(bootstrap_allgather(b, &mine, sizeof mine, all) >= 0, "%s", b->error);
    must(fi_av_insert(p->f.av, all[1 - b->rank].name, 1, &p->peer, 0, NULL) == 1, "fi_av_insert");
    p->to = all[1 - b->rank].base;
    p->key = all[1 - b->rank].key;
}

static void plain_poll(struct plain *p)
{
    struct fi_cq_data_entry c[8];
    ssize_t n = fi_cq_read(p->f.cq, c, 8);

    must(n > 0 || n == -FI_EAGAIN, "fi_cq_read: %s", fi_strerror((int)-n));
    for (ssize_t i = 0; i < n; i++)
        if (c[i].flags & FI_REMOTE_WRITE)
            p->remote++;
        else
            p->sent++;
    if (n <= 0)
        sched_yield();
}

static void plain_write(struct plain *p, uint64_t at, uint64_t bytes, uint64_t flags)
{
    void *desc = fi_mr_desc(p->f.window);
    struct iovec from = {p->window + at, bytes};
    struct fi_rma_iov to = {p->to + at, bytes, p->key};
    struct fi_msg_rma m = {
        .msg_iov = &from, .desc = &desc, .iov_count = 1, .addr = p->peer, .rma_iov = &to, .rma_iov_count = 1};
    ssize_t error;

    while ((error = fi_writemsg(p->f.ep, &m, flags | FI_COMPLETION)) == -FI_EAGAIN)
        plain_poll(p);
    must(error == 0, "fi_writemsg: %s", fi_strerror((int)-error));
}

/* Member 1 makes progress until the last write, which carries data, has come. */
static void plain_close(struct plain *p, struct bootstrap *b)
{
    if (b->rank == 0) {
        uint64_t sent = p->sent;

        plain_write(p, 0, 8, FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE);
        while (p->sent == sent)
            plain_poll(p);
    } else {
        uint64_t remote = p->remote;

        while (p->remote == remote)
            plain_poll(p);
        for (uint64_t until_ns = clock_now_ns() + 20000000; clock_now_ns() < until_ns;)
            plain_poll(p);
    }
    bootstrap_barrier(b);
    ofi_fabric_close(&p->f);
    munmap(p->window, p->e.config.window.bytes);
}

static uint64_t flags_of(const struct bench *bench)
{
    return bench->delivered ? FI_DELIVERY_COMPLETE : 0;
}

static void write_many(struct plain *p, uint32_t count, uint64_t flags)
{
    uint64_t first = p->sent;

    for (uint32_t i = 0; i < count; i++) {
        while (i - (p->sent - first) >= BENCH_DEPTH)
            plain_poll(p);
        plain_write(p, (uint64_t)(i % BENCH_DEPTH) * BENCH_BYTES, BENCH_BYTES,
                    i + 1 == count ? FI_DELIVERY_COMPLETE : flags);
    }
    while (p->sent - first < count)
        plain_poll(p);
}

int bench_plain_bandwidth(struct bootstrap *b, void *arg)
{
    const struct bench *bench = arg;
    struct plain p;

    plain_open(&p, b, bench);
    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    if (b->rank == 0) {
        uint64_t since_ns;

        write_many(&p, BENCH_DEPTH, flags_of(bench));
        since_ns = clock_now_ns();
        write_many(&p, bench->puts, flags_of(bench));
        *bench->figure = (double)bench->puts * BENCH_BYTES / ((double)(clock_now_ns() - since_ns) * 1e-9) * 1e-6;
    }
    plain_close(&p, b);
    return 0;
}

static void await_remote(struct plain *p, uint64_t count)
{
    while (p->remote < count)
        plain_poll(p);
}

int bench_plain_latency(struct bootstrap *b, void *arg)
{
    const struct bench *bench = arg;
    struct plain p;
    uint64_t since_ns = 0;

    plain_open(&p, b, bench);
    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    for (uint32_t i = 1; i <= bench->rounds + 10; i++) {
        if (i == 10)
            since_ns = clock_now_ns();
        if (b->rank == 1)
            await_remote(&p, i);
        plain_write(&p, 0, 8, FI_REMOTE_CQ_DATA | flags_of(bench));
        if (b->rank == 0)
            await_remote(&p, i);
    }
    if (b->rank == 0)
        *bench->figure = (double)(clock_now_ns() - since_ns) * 1e-3 / bench->rounds / 2;
    plain_close(&p, b);
    return 0;
}

int bench_plain_completion(struct bootstrap *b, void *arg)
{
    const struct bench *bench = arg;
    struct plain p;
    uint64_t since_ns = 0;

    plain_open(&p, b, bench);
    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    for (uint32_t i = 1; b->rank == 0 && i <= bench->rounds + 10; i++) {
        if (i == 10)
            since_ns = clock_now_ns();
        plain_write(&p, 0, 8, FI_REMOTE_CQ_DATA | flags_of(bench));
        while (p.sent < i)
            plain_poll(&p);
    }
    if (b->rank == 0)
        *bench->figure = (double)(clock_now_ns() - since_ns) * 1e-3 / bench->rounds;
    else
        await_remote(&p, bench->rounds + 10);
    plain_close(&p, b);
    return 0;
}
