/* How long the other nodes are waited for; the test is this node's parent, who asks them. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/net/way.h"
#include "core/clock.h"
#include "core/run/relay_message.h"

#include "../suite.h"

#define TIMEOUT_MS 50

static int ends[2]; /* the child's, the parent's */

static bool never(void *owner)
{
    (void)owner;
    return false;
}

/* False: built without a transport between processes, which the way would refuse. */
static bool open_way(struct way *w)
{
    static const char hosts[2][NODE_HOST_BYTES] = {"a", "b"};
    static struct node_link link = {.node = 0, .count = 2, .hosts = hosts};
    static const struct program program = {.world = {2, 1}};
    static const struct job job = {.program = &program, .nodes = &link};
    static const struct way_options options = {.transport = 1};
    char why[WAY_WHY_BYTES];

    if (!transport_find("ofi")) {
        fprintf(stderr, "test_way: skipped: built without libfabric\n");
        return false;
    }
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    link.socket = ends[0];
    ck_assert_int_eq(way_open(w,
                              &(struct way_config){.job = &job,
                                                   .options = &options,
                                                   .backend = "test",
                                                   .loopback_text = "",
                                                   .depth = 1,
                                                   .timeout_ps = TIMEOUT_MS * 1000000000ull,
                                                   .stopped = never},
                              why),
                     ST_OK);
    return true;
}

static void close_way(struct way *w)
{
    way_close(w);
    close(ends[0]);
    close(ends[1]);
}

/* The other node is nearly as late as this one. */
static void *answer(void *arg)
{
    struct relay_message m;
    uint8_t mine, both[2] = {1, 1};

    usleep(TIMEOUT_MS * 1000);
    ck_assert_int_eq(recv(ends[1], &m, sizeof m, MSG_WAITALL), sizeof m);
    ck_assert_int_eq(recv(ends[1], &mine, 1, MSG_WAITALL), 1);
    m.bytes = sizeof both;
    ck_assert_int_eq(send(ends[1], &m, sizeof m, 0), sizeof m);
    ck_assert_int_eq(send(ends[1], both, sizeof both, 0), sizeof both);
    return arg;
}

START_TEST(own_preparations_are_no_time_of_others)
{
    struct way w;
    char why[WAY_WHY_BYTES] = "";
    pthread_t other;

    if (!open_way(&w))
        return;
    usleep(4 * TIMEOUT_MS * 1000);
    ck_assert_int_eq(pthread_create(&other, NULL, answer, NULL), 0);
    ck_assert_msg(way_meet(&w, why) == ST_OK, "%s", why);
    pthread_join(other, NULL);
    close_way(&w);
}
END_TEST

START_TEST(who_does_not_come_is_waited_for_three_time_outs)
{
    struct way w;
    char why[WAY_WHY_BYTES] = "";
    uint64_t begin_ns = clock_now_ns(), took_ns;

    if (!open_way(&w))
        return;
    ck_assert_int_eq(way_meet(&w, why), ST_HANG);
    took_ns = clock_now_ns() - begin_ns;
    ck_assert_str_eq(why, "another node's process did not come to the beginning of the run");
    ck_assert_uint_ge(took_ns, 3 * TIMEOUT_MS * 1000000ull);
    ck_assert_uint_lt(took_ns, 5000000000ull);
    close_way(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("way");
    TCase *c = tcase_create("all");

    tcase_add_test(c, own_preparations_are_no_time_of_others);
    tcase_add_test(c, who_does_not_come_is_waited_for_three_time_outs);
    suite_add_tcase(s, c);
    return suite_run(s);
}
