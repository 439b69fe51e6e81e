/* Every listed transport keeps the contract of backends/net/transport.h.
 *
 *   test_transports [TRANSPORT[:OPTION=VALUE ...] ...]
 *
 * Without arguments: every transport there is; one that cannot run here is skipped aloud.  Named ones have to
 * run. */
#include <check.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/net/bootstrap_local.h"
#include "backends/net/mesh.h"
#include "member.h"

#define SETTINGS_MAX 16
#define RUN_S (WAIT_S * 2)

/* Beside each transport's defaults. */
static const struct {
    const char *transport, *options;
    bool faults; /* else they differ only in how data travel */
} more_settings[] = {
    {"ofi", "provider=shm", true},
    {"ofi", "data_bytes=4 message_max=1000B", false}, /* signals beside the writes, bytes in pieces */
    {"loopback", "reorder=true delay_max=200us", false},
};

static struct setting settings[SETTINGS_MAX];
static int setting_count, fault_count; /* of all, the first ones for faults */

/* Runs fn on `size` members; each has to return 0. */
static void run(local_member_fn *fn, int setting, uint32_t size)
{
    const struct setting *s = &settings[setting];
    enum local_kind kind = s->transport->in_process ? LOCAL_THREADS : LOCAL_PROCESSES;
    int codes[LOCAL_MEMBERS_MAX];

    ck_assert(local_run(kind, size, RUN_S, fn, (void *)s, codes));
    for (uint32_t i = 0; i < size; i++)
        ck_assert_msg(codes[i] == 0, "%s %s: member %u of %u: exit code %d", s->transport->name, s->options, i, size,
                      codes[i]);
}

/* ---- sizes ---- */

static const uint64_t sizes[] = {0, 1, 7, 8, 63, 64, 65, 4095, 4096, 4097, 65537, (1u << 20) + 3, 4u << 20};

#define SIZE_COUNT (sizeof sizes / sizeof *sizes)
#define GUARD 64

/* Member 0 puts each size from an odd place to another odd place; nothing beside it may change. */
static int puts_of_size(struct bootstrap *b, void *setting)
{
    uint64_t window = (4u << 20) + 4096;
    struct member *m = member_open(setting, b, window, 4, 8, WAIT_S);

    member_connect(m);
    for (uint64_t i = 0; i < SIZE_COUNT; i++) {
        uint64_t n = sizes[i], from = 3 + i, to = GUARD + i * 5;

        if (b->rank == 0) {
            pattern_fill(m->window + from, n, i);
            member_put_well(m, (struct put){.peer = 1, .flag = 1, .value = i + 1, .from = from, .to = to, .bytes = n});
        } else {
            member_await_flag(m, 1, i + 1);
            must(pattern_holds(m->window + to, n, i), "%llu bytes are wrong", (unsigned long long)n);
            must(all_bytes_are(m->window + to - GUARD, GUARD, 0), "written in front");
            must(all_bytes_are(m->window + to + n, GUARD, 0), "written behind");
            memset(m->window, 0, window);
            must(m->flags[0] == 0 && m->flags[2] == 0, "another flag");
        }
        member_barrier(m);
    }
    member_close(m);
    return 0;
}

START_TEST(any_size_arrives_whole)
{
    run(puts_of_size, _i, 2);
}
END_TEST

/* ---- very large ---- */

#define STAMP_EVERY 65536

static uint64_t large_bytes(const struct setting *s)
{
    uint64_t there = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    bool defaults = s->options[0] == 0; /* once a transport */

    return slow_machine() || there < 4ull << 30 || !defaults ? 4u << 20 : 1u << 30;
}

static int put_large(struct bootstrap *b, void *setting)
{
    uint64_t n = large_bytes(setting);
    struct member *m = member_open(setting, b, n, 1, 1, WAIT_S);

    if (b->rank == 0) {
        madvise(m->window, n, MADV_NOHUGEPAGE); /* only pages with stamps need memory */
        for (uint64_t i = 0; i < n; i += STAMP_EVERY)
            memcpy(m->window + i, &i, sizeof i);
    }
    member_connect(m);
    if (b->rank == 0)
        member_put_well(m, (struct put){.peer = 1, .value = 1, .bytes = n});
    else
        member_await_flag(m, 0, 1);
    for (uint64_t i = 0; b->rank == 1 && i < n; i += STAMP_EVERY)
        must(memcmp(m->window + i, &i, sizeof i) == 0, "stamp at %llu", (unsigned long long)i);
    member_barrier(m);
    member_close(m);
    return 0;
}

START_TEST(a_gibibyte_arrives)
{
    run(put_large, _i, 2);
}
END_TEST

/* ---- many puts, both ways, many peers ---- */

#define CHUNK 600

/* Everybody puts `rounds` times to everybody, a chunk and a flag of its own each time, all at once.  Who
 * reads a flag's new value reads that chunk, whatever else is on its way. */
static void exchange(struct member *m, uint32_t rounds)
{
    uint32_t me = m->b->rank, n = m->b->size;
    uint64_t mine = (uint64_t)n * rounds * CHUNK; /* chunks to send stand behind those received */

    for (uint32_t r = 0; r < rounds; r++) {
        pattern_fill(m->window + mine + r * CHUNK, CHUNK, me * 1000 + r);
        for (uint32_t i = 1; i < n; i++)
            member_put_well(m, (struct put){.peer = (me + i) % n,
                                            .flag = me * rounds + r,
                                            .value = r + 1,
                                            .from = mine + r * CHUNK,
                                            .to = ((uint64_t)me * rounds + r) * CHUNK,
                                            .bytes = CHUNK - r % 64,
                                            .id = r});
    }
    for (uint32_t k = 0; k < n * rounds; k++) {
        uint32_t from = k / rounds, r = rounds - 1 - k % rounds; /* the last ones first */

        if (from == me)
            continue;
        member_await_flag(m, from * rounds + r, r + 1);
        must(pattern_holds(m->window + ((uint64_t)from * rounds + r) * CHUNK, CHUNK - r % 64, from * 1000 + r),
             "chunk %u of member %u", r, from);
    }
    member_drain(m);
    must(m->completed == (uint64_t)rounds * (n - 1), "%llu completions", (unsigned long long)m->completed);
}

static int exchange_of(struct bootstrap *b, void *setting, uint32_t rounds, uint32_t depth)
{
    uint64_t window = ((uint64_t)b->size + 1) * rounds * CHUNK;
    struct member *m = member_open(setting, b, window, b->size * rounds, depth, WAIT_S);

    member_connect(m);
    exchange(m, rounds);
    member_barrier(m);
    /* Each put arrives once: nothing is written again behind everybody's back. */
    memset(m->window, 0, window);
    memset(m->flags, 0, (uint64_t)b->size * rounds * sizeof *m->flags);
    member_barrier(m);
    usleep(20000);
    member_barrier(m);
    must(all_bytes_are(m->window, window, 0), "a put arrived twice");
    must(all_bytes_are((uint8_t *)m->flags, b->size * rounds * sizeof *m->flags, 0), "a flag twice");
    member_close(m);
    return 0;
}

static int exchange_many(struct bootstrap *b, void *setting)
{
    return exchange_of(b, setting, slow_machine() ? 50 : 1000, 128);
}

START_TEST(both_directions_at_once)
{
    run(exchange_many, _i, 2);
}
END_TEST

static int exchange_few(struct bootstrap *b, void *setting)
{
    return exchange_of(b, setting, 20, 64);
}

START_TEST(many_peers)
{
    run(exchange_few, _i, slow_machine() ? 4 : 8);
}
END_TEST

/* ---- a full queue ---- */

#define FULL_DEPTH 4

static int fill_queue(struct bootstrap *b, void *setting)
{
    struct member *m = member_open(setting, b, 4096, 64, FULL_DEPTH, WAIT_S);
    struct put puts[FULL_DEPTH * 2];
    uint32_t started = 0;

    member_connect(m);
    for (uint32_t i = 0; i < FULL_DEPTH * 2; i++)
        puts[i] = (struct put){.peer = 1, .flag = i, .value = 1, .bytes = 8, .to = i * 8, .id = 100 + i};
    if (b->rank == 0) {
        enum status st = endpoint_put(m->e, puts, FULL_DEPTH * 2, &started);

        must(st == ST_BUSY, "more than the queue holds: %s", status_text(st));
        must(started > 0 && started <= FULL_DEPTH, "%u started", started);
        must(endpoint_pending(m->e) == started, "%u pending", endpoint_pending(m->e));
        must(member_put(m, puts + started, FULL_DEPTH * 2 - started) >= 0, "%s", endpoint_error(m->e));
    }
    for (uint32_t i = 0; b->rank == 1 && i < FULL_DEPTH * 2; i++)
        member_await_flag(m, i, 1);
    member_barrier(m);
    must(m->completed == (b->rank == 0 ? FULL_DEPTH * 2 : 0), "completions");
    member_close(m);
    return 0;
}

START_TEST(a_full_queue_says_busy_and_drains)
{
    run(fill_queue, _i, 2);
}
END_TEST

/* ---- completion ---- */

/* The flag counts the puts that have completed and the one on its way: no later one overtakes. */
static int complete_in_turn(struct bootstrap *b, void *setting)
{
    uint32_t rounds = slow_machine() ? 20 : 500;
    struct member *m = member_open(setting, b, 4096, 1, 4, WAIT_S);
    uint64_t seen = 0;

    member_connect(m);
    for (uint32_t i = 1; b->rank == 0 && i <= rounds; i++) {
        memset(m->window, (int)(i & 255), 64); /* the source is free again */
        member_put_well(m, (struct put){.peer = 1, .value = i, .bytes = 64});
        member_drain(m);
    }
    while (b->rank == 1 && seen < rounds) {
        uint64_t now = __atomic_load_n(&m->flags[0], __ATOMIC_ACQUIRE);

        must(now >= seen, "the flag went back");
        seen = now;
        must(member_poll(m) >= 0, "%s", endpoint_error(m->e));
        sched_yield();
    }
    must(b->rank == 0 || all_bytes_are(m->window, 64, (uint8_t)rounds), "last bytes");
    member_barrier(m);
    member_close(m);
    return 0;
}

START_TEST(a_completed_put_is_not_overtaken)
{
    run(complete_in_turn, _i, 2);
}
END_TEST

/* ---- close and reconnect ---- */

static int connect_again(struct bootstrap *b, void *setting)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct member *m = member_open(setting, b, 65536, 2 * 20, 16, WAIT_S);

        member_connect(m);
        exchange(m, 20);
        member_barrier(m);
        member_close(m);
        must(bootstrap_barrier(b) >= 0, "%s", b->error);
    }
    return 0;
}

START_TEST(endpoints_connect_again_after_a_close)
{
    run(connect_again, _i, 2);
}
END_TEST

#define SILENT_S (slow_machine() ? 4 : 2) /* until a silent peer is one that has failed */

/* ---- faults: each ends in time and names the peer ---- */

static void must_name_peer(const struct member *m, enum status st, const char *name)
{
    must(st == ST_IO || st == ST_HANG, "%s: %s", status_text(st), endpoint_error(m->e));
    must(strstr(endpoint_error(m->e), name) != NULL, "does not name %s: %s", name, endpoint_error(m->e));
    must(member_poll((struct member *)m) == st, "the error does not stay");
}

/* Nothing that a process which is killed would leave behind. */
static bool has_no_regions(void)
{
    char pattern[64];
    glob_t found;
    bool none;

    snprintf(pattern, sizeof pattern, "/dev/shm/%d:*", (int)getpid());
    none = glob(pattern, 0, NULL, &found) == GLOB_NOMATCH;
    globfree(&found);
    return none;
}

static int lose_peer(struct bootstrap *b, void *setting)
{
    const struct setting *s = setting;
    struct member *m = member_open(setting, b, 4096, 4, 4, SILENT_S);

    member_connect(m);
    member_put_well(m, (struct put){.peer = 1 - b->rank, .flag = 1, .value = 1, .to = 64, .bytes = 8});
    member_await_flag(m, 1, 1);
    member_barrier(m);
    if (b->rank == 0)
        must_name_peer(m, member_put_until_error(m, 1), "member 1");
    else if (!s->transport->in_process) {
        must(has_no_regions(), "shared memory still has a name");
        raise(SIGKILL);
    }
    member_close(m);
    return 0;
}

START_TEST(a_peer_that_dies_is_an_error_with_its_name)
{
    const struct setting *s = &settings[_i];
    bool in_process = s->transport->in_process;
    int codes[2];

    ck_assert(local_run(in_process ? LOCAL_THREADS : LOCAL_PROCESSES, 2, RUN_S, lose_peer, (void *)s, codes));
    ck_assert_int_eq(codes[0], 0);
    ck_assert_int_eq(codes[1], in_process ? 0 : LOCAL_KILLED + SIGKILL);
}
END_TEST

/* Addresses are exchanged by hand, so that they can be spoiled. */
static struct endpoint_address address_of_peer(struct member *m)
{
    struct endpoint_address mine, all[2];

    must(endpoint_address(m->e, 1 - m->b->rank, &mine) >= 0, "%s", endpoint_error(m->e));
    must(bootstrap_allgather(m->b, &mine, sizeof mine, all) >= 0, "%s", m->b->error);
    return all[1 - m->b->rank];
}

static int put_with_wrong_key(struct bootstrap *b, void *setting)
{
    struct member *m = member_open(setting, b, 4096, 4, 4, SILENT_S);
    struct endpoint_address a = address_of_peer(m);

    if (b->rank == 0)
        a.window_key ^= 0x5a5a;
    must(endpoint_connect(m->e, 1 - b->rank, &a) >= 0, "%s", endpoint_error(m->e));
    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    if (b->rank == 0) {
        memset(m->window, 1, 64);
        must_name_peer(m, member_put_until_error(m, 1), "member 1");
        must(bootstrap_barrier(b) >= 0, "%s", b->error);
    } else {
        mesh_barrier(&m->e, 1, b); /* progress; what it meets may be an error here as well */
        must(all_bytes_are(m->window, 4096, 0), "bytes were written");
        must(m->flags[0] == 0, "the flag was raised");
    }
    member_close(m);
    return 0;
}

START_TEST(a_wrong_key_is_an_error_with_the_peers_name)
{
    run(put_with_wrong_key, _i, 2);
}
END_TEST

/* Whoever of the two notices. */
static int raise_with_wrong_key(struct bootstrap *b, void *setting)
{
    struct member *m = member_open(setting, b, 4096, 4, 4, SILENT_S);
    struct endpoint_address a = address_of_peer(m);

    if (b->rank == 0) {
        a.window_key ^= 0x5a5a;
        a.flags_key ^= 0x5a5a;
    }
    must(endpoint_connect(m->e, 1 - b->rank, &a) >= 0, "%s", endpoint_error(m->e));
    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    if (b->rank == 0) {
        enum status st = member_put(m, &(struct put){.peer = 1, .value = 1}, 1);

        for (int i = 0; i < 1000 && st >= 0 && m->completed == 0; i++) {
            st = member_poll(m);
            usleep(1000);
        }
        must(bootstrap_barrier(b) >= 0, "%s", b->error);
    } else {
        must(mesh_barrier(&m->e, 1, b) >= 0 || endpoint_error(m->e)[0], "no barrier");
        must(m->flags[0] == 0, "the flag was raised");
    }
    member_close(m);
    return 0;
}

START_TEST(a_wrong_key_raises_no_flag)
{
    run(raise_with_wrong_key, _i, 2);
}
END_TEST

static int connect_to_closed(struct bootstrap *b, void *setting)
{
    struct member *m = member_open(setting, b, 4096, 4, 4, SILENT_S);
    struct endpoint_address a = address_of_peer(m);

    if (b->rank == 1)
        member_close(m);
    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    if (b->rank == 0) {
        enum status st = endpoint_connect(m->e, 1, &a);

        must_name_peer(m, st < 0 ? st : member_put_until_error(m, 1), "member 1");
        member_close(m);
    }
    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    return 0;
}

START_TEST(a_closed_peer_is_an_error_with_its_name)
{
    run(connect_to_closed, _i, 2);
}
END_TEST

static int speak_another_language(struct bootstrap *b, void *setting)
{
    struct member *m = member_open(setting, b, 4096, 4, 4, SILENT_S);
    struct endpoint_address a = address_of_peer(m);

    strcpy(a.transport, "carrier-pigeon");
    must(endpoint_connect(m->e, 1 - b->rank, &a) == ST_INPUT, "connected");
    must(strstr(endpoint_error(m->e), "carrier-pigeon") != NULL, "%s", endpoint_error(m->e));
    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    member_close(m);
    return 0;
}

START_TEST(both_ends_have_to_speak_the_same)
{
    run(speak_another_language, _i, 2);
}
END_TEST

/* ---- GPU memory ---- */

static void must_refuse(const struct transport *t)
{
    struct endpoint_config c = {
        .peers = 2, .depth = 1, .window = {.base = (void *)4096, .bytes = 4096, .gpu = true, .dmabuf = -1}};
    struct endpoint *e;
    char why[256];

    ck_assert_int_eq(endpoint_open(t, &c, &e, why, sizeof why), ST_UNSUPPORTED);
    ck_assert_ptr_null(e);
    ck_assert_ptr_nonnull(strstr(why, "GPU memory"));
}

/* A device that knows no such dma-buf registers the memory as it stands: here it is the host's. */
START_TEST(gpu_memory_is_refused_or_registered_without_a_dma_buf)
{
    struct setting s = settings[_i];
    int codes[2];

    s.gpu = true;
    if (!s.transport->gpu) {
        must_refuse(s.transport);
        return;
    }
    ck_assert(local_run(LOCAL_PROCESSES, 2, RUN_S, exchange_few, &s, codes));
    ck_assert(codes[0] == 0 && codes[1] == 0);
}
END_TEST

/* ---- what belongs to one transport ---- */

static int wait_for_a_silent_peer(struct bootstrap *b, void *setting)
{
    struct member *m = member_open(setting, b, 4096, 4, 4, 0.1);

    member_connect(m);
    if (b->rank == 0) {
        must(member_put_until_error(m, 1) == ST_HANG, "%s", endpoint_error(m->e));
        must(strstr(endpoint_error(m->e), "member 1") != NULL, "%s", endpoint_error(m->e));
    }
    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    member_close(m);
    return 0;
}

START_TEST(a_silent_peer_ends_in_time)
{
    struct setting s = {.transport = transport_find("loopback"), .options = "delay_max=60s seed=2"};
    int codes[2];

    ck_assert(local_run(LOCAL_THREADS, 2, RUN_S, wait_for_a_silent_peer, &s, codes));
    ck_assert(codes[0] == 0 && codes[1] == 0);
}
END_TEST

static int count_reordered(struct bootstrap *b, void *setting)
{
    struct member *m = member_open(setting, b, 4096, 64, 64, WAIT_S);
    uint32_t overtaken = 0;

    member_connect(m);
    for (uint32_t i = 0; b->rank == 0 && i < 64; i++)
        member_put_well(m, (struct put){.peer = 1, .flag = i, .value = 1, .bytes = 8});
    while (b->rank == 0 && endpoint_pending(m->e) > 0) {
        uint64_t id;
        uint32_t count;

        must(endpoint_poll(m->e, &id, 1, &count) >= 0, "%s", endpoint_error(m->e));
        must(bootstrap_barrier(b) >= 0 && bootstrap_barrier(b) >= 0, "%s", b->error);
    }
    for (uint32_t seen = 0; b->rank == 1 && seen < 64;) {
        must(bootstrap_barrier(b) >= 0, "%s", b->error);
        seen = 0;
        for (uint32_t i = 0; i < 64; i++)
            seen += (uint32_t)m->flags[i]; /* nobody puts now */
        for (uint32_t i = 0; i < seen; i++)
            overtaken += m->flags[i] == 0;
        must(bootstrap_barrier(b) >= 0, "%s", b->error);
    }
    must(b->rank == 0 || overtaken > 100, "%u overtaken", overtaken);
    member_close(m);
    return 0;
}

START_TEST(loopback_reorders_when_told_to)
{
    struct setting s = {.transport = transport_find("loopback"), .options = "reorder=true"};
    int codes[2];

    ck_assert(local_run(LOCAL_THREADS, 2, RUN_S, count_reordered, &s, codes));
    ck_assert(codes[0] == 0 && codes[1] == 0);
}
END_TEST

/* ---- which transports ---- */

/* Asked once, here: to start takes libfabric 0.15 s, and members inherit what has been started. */
static bool can_run(const struct transport *t)
{
    char why[256] = "";

    if (transport_available(t, why, sizeof why) >= 0)
        return true;
    fprintf(stderr, "skipped: transport %s: %s\n", t->name, why);
    return false;
}

static void add_more_settings(const struct transport *t, bool faults)
{
    for (size_t i = 0; i < sizeof more_settings / sizeof *more_settings; i++)
        if (more_settings[i].faults == faults && strcmp(more_settings[i].transport, t->name) == 0)
            settings[setting_count++] = (struct setting){.transport = t, .options = more_settings[i].options};
}

static void add_listed_settings(void)
{
    for (int i = 0; transport_list[i]; i++)
        if (can_run(transport_list[i])) {
            settings[setting_count++] = (struct setting){.transport = transport_list[i], .options = ""};
            add_more_settings(transport_list[i], true);
        }
    fault_count = setting_count;
    for (int i = 0; i < fault_count; i++)
        if (settings[i].options[0] == 0)
            add_more_settings(settings[i].transport, false);
}

/* False: one of those named cannot run. */
static bool choose_settings(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = strtok(argv[i], ":"), *options = strtok(NULL, "");
        const struct transport *t = transport_find(name);

        if (!t || !can_run(t)) {
            fprintf(stderr, "test_transports: %s has to run, and cannot\n", name);
            return false;
        }
        settings[setting_count++] = (struct setting){.transport = t, .options = options ? options : ""};
    }
    fault_count = setting_count;
    if (argc == 1)
        add_listed_settings();
    return true;
}

typedef void add_fn(TCase *tc, int count);

static void add_data(TCase *tc, int n)
{
    tcase_add_loop_test(tc, any_size_arrives_whole, 0, n);
    tcase_add_loop_test(tc, a_gibibyte_arrives, 0, n);
    tcase_add_loop_test(tc, both_directions_at_once, 0, n);
    tcase_add_loop_test(tc, many_peers, 0, n);
    tcase_add_loop_test(tc, a_full_queue_says_busy_and_drains, 0, n);
    tcase_add_loop_test(tc, a_completed_put_is_not_overtaken, 0, n);
    tcase_add_loop_test(tc, endpoints_connect_again_after_a_close, 0, n);
}

static void add_faults(TCase *tc, int n)
{
    tcase_add_loop_test(tc, a_peer_that_dies_is_an_error_with_its_name, 0, n);
    tcase_add_loop_test(tc, a_wrong_key_is_an_error_with_the_peers_name, 0, n);
    tcase_add_loop_test(tc, a_wrong_key_raises_no_flag, 0, n);
    tcase_add_loop_test(tc, a_closed_peer_is_an_error_with_its_name, 0, n);
    tcase_add_loop_test(tc, both_ends_have_to_speak_the_same, 0, n);
    tcase_add_loop_test(tc, gpu_memory_is_refused_or_registered_without_a_dma_buf, 0, n);
}

static void add_own(TCase *tc, int n)
{
    (void)n;
    tcase_add_test(tc, a_silent_peer_ends_in_time);
    tcase_add_test(tc, loopback_reorders_when_told_to);
}

static void add_case(Suite *s, const char *name, add_fn *add, int count)
{
    TCase *tc = tcase_create(name);

    tcase_set_timeout(tc, RUN_S + 10);
    add(tc, count);
    suite_add_tcase(s, tc);
}

int main(int argc, char **argv)
{
    Suite *s = suite_create("transports");
    SRunner *runner = srunner_create(s);
    int failed = 1;

    if (choose_settings(argc, argv)) {
        add_case(s, "data", add_data, setting_count);
        add_case(s, "faults", add_faults, fault_count);
        add_case(s, "own", add_own, 0);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
    }
    srunner_free(runner);
    return failed != 0;
}
