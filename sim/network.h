/* The part of the engine that speaks SimGrid: hosts, links, flows in progress, and one alarm.
 *
 * Every port is a host in one star zone, its route out and its route in one link each, without
 * latency.  The engine (engine.c) keeps timers, latencies and the order of events to itself and
 * sees SimGrid only through this header. */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct network;

struct network_hooks {
    void *arg;
    /* The flow's last byte has left its links. */
    void (*drained)(void *arg, uint32_t flow);
    /* It is `time_ps`; all that drained until now has been reported. */
    void (*advanced)(void *arg, uint64_t time_ps);
};

/* SimGrid's clock carries a relative error of some 1e-16 per event.  Durations of x.5 ps are common
 * (2.5 ps a byte at 400 GB/s) and that error would toss them up or down, so the border lies a
 * little off.  Times end at 46 days: what takes longer is at least still in order. */
static inline uint64_t network_round_ps(double ps)
{
    return ps < 4e18 ? (uint64_t)(ps + 0.501) : (uint64_t)4e18;
}

/* Whether kernel actions exist in this build and in the SimGrid library that is loaded. */
bool network_has_kernel(void);

/* Of the library that is loaded: "3.32". */
const char *network_version(void);

/* config->api is ENGINE_KERNEL or ENGINE_S4U.  NULL: SimGrid has no CM02 model. */
struct network *network_create(const struct engine_config *config, struct network_hooks hooks);

/* Either end counts ports, then groups; ENGINE_NO_PORT: none.  bytes > 0.  rate_bound 0: none. */
void network_start(struct network *n, uint32_t flow, uint32_t src, uint32_t dst, uint64_t bytes, double rate_bound);

/* Has advanced() called at `time_ps` at the latest.  An earlier alarm stays. */
void network_alarm(struct network *n, uint64_t time_ps);

/* Returns when no flow and no alarm is left. */
void network_run(struct network *n);
uint64_t network_now_ps(void);
void network_destroy(struct network *n);

#ifdef __cplusplus
}
#endif

#endif
