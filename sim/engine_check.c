/* The self-check runs in a child process: a wrong guess about SimGrid's insides most likely
 * crashes, a process bears only one SimGrid engine, and the clock of the real run must start at
 * zero.  It costs a few milliseconds per engine. */
#include "sim/engine_check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "sim/network.h"

#define CHECK_SECONDS 20

struct probe {
    struct engine *engine;
    uint64_t ended_ps[3];
};

static void note_end(void *arg, uint64_t flow, uint64_t unused)
{
    struct probe *p = arg;

    (void)unused;
    p->ended_ps[flow] = engine_now_ps(p->engine);
}

/* Two flows of 1 MB into one port of 100 GB/s take 20 us each, although one has four times the
 * other's latency; 100 kB at no more than 10 GB/s take 10 us. */
static bool times_are_right(enum engine_api api)
{
    static const struct engine_port ports[] = {
        {100e9, 1000000}, {100e9, 4000000}, {100e9, 1000000}, {100e9, 0}, {100e9, 0},
    };
    struct engine_config config = {.api = api, .ports = ports, .port_count = 5};
    struct probe p = {0};

    if (engine_create_unchecked(&config, &p.engine) < 0)
        return false;
    engine_flow(p.engine, 0, 2, 1000000, 0, note_end, &p, 0, 0);
    engine_flow(p.engine, 1, 2, 1000000, 0, note_end, &p, 1, 0);
    engine_flow(p.engine, 3, 4, 100000, 10e9, note_end, &p, 2, 0);
    engine_run(p.engine);
    return p.ended_ps[0] == 21000000 && p.ended_ps[1] == 24000000 && p.ended_ps[2] == 10000000;
}

static void check_in_child(enum engine_api api)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (null >= 0)
        dup2(null, STDERR_FILENO); /* the parent says it in one line */
    alarm(CHECK_SECONDS);
    _exit(times_are_right(api) ? 0 : 1);
}

static bool check_passes(enum engine_api api)
{
    int wait_status = -1;
    pid_t child = fork();

    if (child == 0)
        check_in_child(api);
    if (child < 0)
        return false;
    while (waitpid(child, &wait_status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
}

enum status engine_check_api(enum engine_api wanted, enum engine_api *chosen_out)
{
    bool kernel = wanted != ENGINE_S4U && network_has_kernel() && check_passes(ENGINE_KERNEL);

    if (!kernel && wanted == ENGINE_KERNEL) {
        log_error("simgrid %s: kernel actions do not work here; they are known to work with 3.32", network_version());
        return ST_ENVIRONMENT;
    }
    if (!kernel && !check_passes(ENGINE_S4U)) {
        log_error("simgrid %s: three flows do not take the time they should", network_version());
        return ST_ENVIRONMENT;
    }
    if (!kernel && wanted == ENGINE_AUTO)
        log_warn("simgrid %s: kernel actions do not work here (they are known to work with 3.32); "
                 "simulating through s4u, slower",
                 network_version());
    *chosen_out = kernel ? ENGINE_KERNEL : ENGINE_S4U;
    return ST_OK;
}
