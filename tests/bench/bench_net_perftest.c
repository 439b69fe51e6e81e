/* What a user of verbs would measure with: ib_write_bw of perftest; see bench_net.h.  Member 1 runs its server, member
 * 0 its client, which meet over TCP on this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/net/verbs_device.h"
#include "bench_net.h"

#define PORT 18515 /* and up, one a turn */
#define RUNS 3     /* at most */
#define TRIES 50   /* until the server listens, 0.2 s each */

bool perftest_is_there(void)
{
    return system("command -v ib_write_bw >/dev/null") == 0;
}

/* The transport's options name the devices, one a member, or one for both. */
static void device_of(const struct bench *bench, uint32_t rank, char *out, size_t out_bytes)
{
    const char *at = strstr(bench->setting.options, "device="), *second;
    size_t length;

    must(at != NULL, "say which devices: verbs:device=A,B");
    at += strlen("device=");
    length = strcspn(at, ", ");
    second = at[length] == ',' ? at + length + 1 : at;
    at = rank == 0 ? at : second;
    snprintf(out, out_bytes, "%.*s", (int)strcspn(at, ", "), at);
}

/* The GID of an IPv4 address, as the transport chooses it; perftest wants its index. */
static int gid_index(const char *device)
{
    for (int i = 0; i < 16; i++) {
        char path[512], gid[64] = "";
        FILE *f;

        snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/gids/%d", device, i);
        f = fopen(path, "r");
        if (f && fgets(gid, sizeof gid, f) && strncmp(gid, "0000:0000:0000:0000:0000:ffff:", 30) == 0) {
            fclose(f);
            return i;
        }
        if (f)
            fclose(f);
    }
    must(false, "%s has no GID of an IPv4 address", device);
    return -1;
}

/* One end's run.  False: it did not come about, the other end is not there yet.  *mb_s (1e6) stays 0 where a run gives
 * no figure, as now and then in an emulated machine; `said` is what it printed instead. */
static bool write_bw(const struct bench *bench, uint32_t rank, double *mb_s, char *said, size_t said_bytes)
{
    char device[OPTION_TEXT_BYTES], command[1024], line[512];
    double mib_s;
    unsigned bytes;
    FILE *f;

    device_of(bench, rank, device, sizeof device);
    snprintf(command, sizeof command,
             "timeout %d ib_write_bw -d %s -x %d -p %u -F -s %u -n %u -t %u -u 20 --perform_warm_up %s 2>&1", WAIT_S,
             device, gid_index(device), PORT + bench->turn, BENCH_BYTES, bench->puts, BENCH_DEPTH,
             rank == 0 ? "127.0.0.1" : "");
    f = popen(command, "r");
    must(f != NULL, "ib_write_bw does not start");
    said[0] = 0;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, " %u %*u %*f %lf", &bytes, &mib_s) == 2 && bytes == BENCH_BYTES)
            *mb_s = mib_s * 1.048576; /* size, writes, peak, average */
        snprintf(said + strlen(said), said_bytes - strlen(said), "%s", line);
    }
    return pclose(f) == 0;
}

/* Both ends, once. */
static double run_pair(const struct bench *bench, struct bootstrap *b)
{
    double mb_s = 0, both[2];
    char said[4096];
    bool ran = false;

    must(bootstrap_barrier(b) >= 0, "%s", b->error);
    for (int i = 0; !ran && i < (b->rank == 0 ? TRIES : 1); i++) {
        if (b->rank == 0)
            nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        ran = write_bw(bench, b->rank, &mb_s, said, sizeof said);
    }
    if (b->rank == 0 && (!ran || mb_s == 0))
        fprintf(stderr, "ib_write_bw gives no figure:\n%s", said);
    must(bootstrap_allgather(b, &mb_s, sizeof mb_s, both) >= 0, "%s", b->error);
    return both[0];
}

int bench_perftest_bandwidth(struct bootstrap *b, void *arg)
{
    const struct bench *bench = arg;
    double mb_s = 0;

    for (int i = 0; mb_s == 0 && i < RUNS; i++)
        mb_s = run_pair(bench, b);
    must(mb_s > 0, "ib_write_bw gives no figure in %d runs", RUNS);
    if (b->rank == 0)
        *bench->figure = mb_s;
    return 0;
}
