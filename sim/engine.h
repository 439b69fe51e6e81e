/* Discrete events over SimGrid's network model.
 *
 * One engine per process (two SimGrid engines in one process disturb each other), but any number of
 * ENGINE_FLUID and ENGINE_ALONE, beside each other and beside it, which do without SimGrid.  Everything runs
 * in engine_run(), which calls back; callbacks may start flows and timers.  Time is integer
 * picoseconds.  Events of equal time fire in the order in which they were scheduled, flows that end
 * at the same time before timers, in the order in which they were started: same input, same output.
 *
 * Flows share links max-min fairly, whatever their latencies.  A flow occupies its links from its
 * start until its last byte has left; fn is called one latency later.  A flow that shares with
 * nobody ends within 1 ps of bytes / rate + latency (up to half an hour of simulated time, from
 * where on SimGrid's clock, a double, is coarser than that). */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct engine;

enum engine_api {
    ENGINE_AUTO,   /* kernel actions where they are known to work and pass a check, else s4u */
    ENGINE_KERNEL, /* SimGrid's kernel network actions: fast, per-flow rate bounds exact */
    ENGINE_S4U,    /* public API only, slow with many flows in flight; a rate bound only delays the
                      * flow's end, it leaves no more of the link to others */
    ENGINE_FLUID,  /* the same sharing by our own solver (sim/fluid.h), no SimGrid: any number per
                      * process; for many small simulations, and a check on SimGrid */
    ENGINE_ALONE,  /* no SimGrid: every flow takes as long as if it had its links to itself.  For runs
                      * that perturb every delay anyway and want thousands of them a minute */
};

/* A port is a full-duplex attachment: one link out, one link in, both of `rate` bytes/s.  A flow
 * goes out of one port and into another and takes the larger of their latencies. */
struct engine_port {
    double rate;
    uint64_t latency_ps; /* of the whole path between two such ports */
};

/* What a switch multicasts to, or adds from: a flow into or out of a group takes the same share of the in links, or out
 * links, of the ports [first_port, first_port + port_count). */
struct engine_group {
    uint32_t first_port, port_count;
};

typedef void engine_fn(void *arg, uint64_t a, uint64_t b);

struct engine_config {
    enum engine_api api;
    const struct engine_port *ports;
    uint32_t port_count;
    const struct engine_group *groups;
    uint32_t group_count;
};

/* The arrays of *config are borrowed for the call only.  First a small case with known times runs
 * in a child process (3 ms): ENGINE_AUTO falls back to s4u, with a warning, when kernel actions
 * fail.  ST_ENVIRONMENT (logged) when the api asked for is not there or fails. */
enum status engine_create(const struct engine_config *config, struct engine **out);

/* Calls fn(arg, a, b) `delay_ps` from now. */
void engine_after(struct engine *e, uint64_t delay_ps, engine_fn *fn, void *arg, uint64_t a, uint64_t b);

#define ENGINE_NO_PORT UINT32_MAX

/* Starts a flow; fn(arg, a, b) is called when its last byte has arrived.  dst: another port (without SimGrid also the
 * same one, both of whose links then count), or engine_group_port(), or ENGINE_NO_PORT (only the out link counts).
 * src: a port or a group; not both ends may be groups.  src ENGINE_NO_PORT: only the in link
 * counts, and the caller says with engine_count_out() whose bytes they are.  bytes may be 0: latency only.
 * rate_bound: bytes/s, 0: none. */
void engine_flow(struct engine *e, uint32_t src, uint32_t dst, uint64_t bytes, double rate_bound, engine_fn *fn,
                 void *arg, uint64_t a, uint64_t b);

/* A flow that has arrived.  src and dst as engine_flow() was told. */
struct engine_use {
    uint32_t src, dst;
    uint64_t bytes, begin_ps;
};

typedef void engine_watch_fn(void *arg, const struct engine_use *use);

/* Has fn called for every flow started from now on, when it arrives, before its own fn. */
void engine_watch(struct engine *e, engine_watch_fn *fn, void *arg);

void engine_count_out(struct engine *e, uint32_t port, uint64_t bytes);

/* A group as an end of a flow, and the ports that an end is: those of a group, a port alone, none. */
uint32_t engine_group_port(const struct engine *e, uint32_t group);
struct engine_group engine_ports_of(const struct engine *e, uint32_t end);

/* Runs until nothing is left to happen.  Once per engine. */
void engine_run(struct engine *e);

uint64_t engine_now_ps(const struct engine *e);
uint64_t engine_flow_count(const struct engine *e); /* started so far */
/* Bytes of all flows started so far; a flow into or out of a group counts at each port of it. */
uint64_t engine_port_bytes_out(const struct engine *e, uint32_t port);
uint64_t engine_port_bytes_in(const struct engine *e, uint32_t port);
const char *engine_model(const struct engine *e); /* "simgrid 3.32 cm02, kernel actions" */

void engine_destroy(struct engine *e);

#endif
