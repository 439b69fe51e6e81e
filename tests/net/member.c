#include "member.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/net/mesh.h"
#include "core/clock.h"

#define POLL_IDS 64

void must(bool ok, const char *what, ...)
{
    va_list args;
    char line[640];

    if (ok)
        return;
    va_start(args, what);
    vsnprintf(line, sizeof line, what, args);
    va_end(args);
    fprintf(stderr, "member: %s\n", line);
    _exit(1);
}

bool slow_machine(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return getenv("MKERNEL_TEST_SLOW") != NULL;
#endif
}

/* ---- open and close ---- */

static void *parse_options(const struct setting *s)
{
    const struct option *table = s->transport->options;
    void *options = calloc(1, s->transport->options_size + 1);
    char text[256], why[256], *at = NULL;

    must(options != NULL, "no memory");
    option_defaults(table, options);
    snprintf(text, sizeof text, "%s", s->options);
    for (char *word = strtok_r(text, " ", &at); word; word = strtok_r(NULL, " ", &at)) {
        char *value = strchr(word, '=');
        const struct option *o;

        *value++ = 0;
        o = option_find(table, word);
        must(o != NULL, "%s has no option \"%s\"", s->transport->name, word);
        must(option_parse(o, options, value, NULL, why, sizeof why) >= 0, "%s: %s", word, why);
    }
    return options;
}

/* Pages that are only read cost no memory. */
static void *zeroed_pages(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must(p != MAP_FAILED, "no memory for %llu bytes", (unsigned long long)bytes);
    madvise(p, bytes, MADV_HUGEPAGE); /* else page faults are most of a large test's time */
    return p;
}

struct member *member_open(const struct setting *s, struct bootstrap *b, uint64_t window_bytes, uint32_t flags,
                           uint32_t depth, double timeout_s)
{
    struct member *m = calloc(1, sizeof *m);
    char why[512];
    enum status st;

    must(m != NULL, "no memory");
    m->setting = s;
    m->b = b;
    m->window = zeroed_pages(window_bytes);
    m->window_bytes = window_bytes;
    m->flags = zeroed_pages(flags * sizeof *m->flags);

    struct endpoint_config c = {
        .index = b->rank,
        .peers = b->size,
        .window = {.base = m->window, .bytes = window_bytes, .gpu = s->gpu, .dmabuf = s->gpu ? 0 : -1},
        .flags = {.base = m->flags, .bytes = flags * sizeof *m->flags, .gpu = s->gpu, .dmabuf = -1},
        .depth = depth,
        .timeout_ps = (uint64_t)(timeout_s * 1e12),
        .options = parse_options(s),
    };

    snprintf(c.name, sizeof c.name, "member %u", b->rank);
    st = endpoint_open(s->transport, &c, &m->e, why, sizeof why);
    must(st >= 0, "open: %s", why);
    return m;
}

void member_connect(struct member *m)
{
    enum status st = mesh_connect(&m->e, 1, m->b);

    must(st >= 0, "connect: %s%s", endpoint_error(m->e), m->b->error);
}

void member_close(struct member *m)
{
    const void *options = m->e->config.options;
    uint64_t flag_bytes = m->e->config.flags.bytes;

    endpoint_close(m->e);
    free((void *)options);
    munmap(m->window, m->window_bytes);
    munmap(m->flags, flag_bytes);
    free(m);
}

/* ---- puts ---- */

enum status member_poll(struct member *m)
{
    uint64_t ids[POLL_IDS];
    uint32_t count;
    enum status st = endpoint_poll(m->e, ids, POLL_IDS, &count);

    m->completed += count;
    return st;
}

enum status member_put(struct member *m, const struct put *puts, uint32_t count)
{
    while (count > 0) {
        uint32_t started;

        TRY(endpoint_put(m->e, puts, count, &started));
        puts += started;
        count -= started;
        if (count > 0)
            TRY(member_poll(m));
    }
    return ST_OK;
}

static void poll_well(struct member *m)
{
    must(member_poll(m) >= 0, "%s", endpoint_error(m->e));
}

/* A short wait is for the other end, a long one for the processor that the other end needs. */
static void pause_idle(uint32_t *idle)
{
    if (++*idle < 500)
        sched_yield();
    else
        usleep(50);
}

static uint64_t flag_now(const struct member *m, uint32_t flag)
{
    return __atomic_load_n(&m->flags[flag], __ATOMIC_ACQUIRE);
}

void member_put_well(struct member *m, struct put p)
{
    must(member_put(m, &p, 1) >= 0, "%s", endpoint_error(m->e));
}

void member_await_flag(struct member *m, uint32_t flag, uint64_t value)
{
    uint64_t deadline_ns = clock_now_ns() + WAIT_S * 1000000000ull;

    for (uint32_t idle = 0; flag_now(m, flag) < value;) {
        poll_well(m);
        if (flag_now(m, flag) < value)
            pause_idle(&idle);
        must(clock_now_ns() < deadline_ns, "flag %u is %llu, not %llu", flag, (unsigned long long)flag_now(m, flag),
             (unsigned long long)value);
    }
}

void member_drain(struct member *m)
{
    uint64_t deadline_ns = clock_now_ns() + WAIT_S * 1000000000ull;

    for (uint32_t idle = 0; endpoint_pending(m->e) > 0;) {
        uint64_t before = m->completed;

        poll_well(m);
        if (m->completed == before)
            pause_idle(&idle);
        must(clock_now_ns() < deadline_ns, "%u puts are not completed", endpoint_pending(m->e));
    }
}

void member_barrier(struct member *m)
{
    enum status st;

    member_drain(m);
    st = mesh_barrier(&m->e, 1, m->b);
    must(st >= 0, "barrier: %s%s", endpoint_error(m->e), m->b->error);
}

enum status member_put_until_error(struct member *m, uint32_t peer)
{
    uint64_t since_ns = clock_now_ns();
    enum status st = ST_OK;

    for (uint64_t i = 1; st >= 0; i++) {
        st = member_put(m, &(struct put){.peer = peer, .flag = 0, .value = i, .bytes = 64}, 1);
        while (st >= 0 && endpoint_pending(m->e) > 0) {
            st = member_poll(m);
            usleep(100); /* it may take seconds */
            must(clock_now_ns() - since_ns < 10000000000ull, "no error within 10 s");
        }
        must(clock_now_ns() - since_ns < 10000000000ull, "puts work for 10 s");
    }
    return st;
}

/* ---- bytes ---- */

static uint8_t pattern_byte(uint64_t at, uint64_t seed)
{
    return (uint8_t)(((at + seed * 131) * 0x9e3779b97f4a7c15u) >> 56);
}

void pattern_fill(uint8_t *at, uint64_t bytes, uint64_t seed)
{
    for (uint64_t i = 0; i < bytes; i++)
        at[i] = pattern_byte(i, seed);
}

bool pattern_holds(const uint8_t *at, uint64_t bytes, uint64_t seed)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (at[i] != pattern_byte(i, seed))
            return false;
    return true;
}

bool all_bytes_are(const uint8_t *at, uint64_t bytes, uint8_t value)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (at[i] != value)
            return false;
    return true;
}
