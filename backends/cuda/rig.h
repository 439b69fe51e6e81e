/* One run: devices, the ranks that live on them, and what they share.
 *
 * All ranks live in this process, or those of one node, and the others in processes like it (core/run/nodes.h).  Arrays
 * hold this process's ranks; rank numbers are those of the world.  Ranks are spread over the devices in order; ranks of
 * one device get disjoint CTAs.  A program is lowered once (lower.c) and uploaded; each epoch is one launch of the
 * interpreter on every device.
 *
 *   device_open .. close      rig_devices.c   what CUDA offers here
 *   rig_create, destroy       rig.c           windows, flags, proxies, the lowered program
 *   rig_begin, rig_end        rig_io.c        inputs, checks, poison
 *   rig_open_net              rig_net.c       puts between nodes, and what other nodes' processes do
 *   rig_create_window         rig_direct.c    windows that network cards reach
 *   rig_check_routes          rig_routes.c    what was dropped
 *   rig_tell_trace            rig_trace.c     what happened when
 *   rig_wait                  rig_watch.c     until all devices are done, or nothing moves any more
 */
#ifndef BACKENDS_CUDA_RIG_H
#define BACKENDS_CUDA_RIG_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/cuda/gpu.h"
#include "backends/cuda/lower.h"
#include "backends/cuda/put_fifo.h"
#include "backends/cuda/stage.h"
#include "backends/net/way.h"
#include "core/backend.h"
#include "core/check.h"

struct cuda_options {
    uint64_t devices; /* at most; 0: all there are */
    uint64_t shares;  /* of a GPU, each of which is a device */
    uint64_t prefetch;
    uint64_t fifo; /* commands */
    uint64_t timeout_ps;
    struct way_options way;
};

#define DEVICES_MAX 16
#define SHARES_MAX 8
#define DEVICE_TABLES_MAX 16

/* A GPU, or a share of one (option shares): then several have one index. */
struct device {
    int index; /* CUDA's */
    char name[64];
    uint32_t sms;
    uint32_t first_rank, rank_count; /* the former by place in the rig */
    uint32_t worker_count;
    cudaStream_t stream; /* the program */
    cudaStream_t side;   /* looks and orders while it runs */
    cudaEvent_t begin, end;
    struct gpu_program program;      /* what a launch gets, but for the epoch */
    struct gpu_worker *workers;      /* on the host */
    void *tables[DEVICE_TABLES_MAX]; /* device memory to free */
    uint32_t table_count;
    uint32_t *abort;         /* device */
    uint64_t host_ahead_ns;  /* the host's clock, of the device's timer; wrapping */
    struct gpu_stuck *stuck; /* device */
};

struct rig_rank {
    uint32_t index;
    struct device *device;
    uint8_t *window;   /* device, in `memory` */
    uint64_t *arrived; /* behind it, by flag: raised by network cards, where these reach it */
    void *memory;
    int dmabuf;             /* of window and `arrived`; -1: none */
    struct gpu_flag *flags; /* device */
    uint64_t *put_flags;    /* pinned, by flag; NULL: the program has no second node */
    uint64_t *counters;     /* device: a pop counter per queue, the FIFO's head, rows dropped */
    uint64_t dropped;       /* the last of these, as last seen */
    uint64_t pops_per_epoch[PROGRAM_QUEUES_MAX];
    struct put_fifo fifo; /* these three: where there is a second node */
    struct stage stage;   /* where the transport does not reach the window */
    struct proxy *proxy;
};

/* How a put comes from a window into one on another node. */
enum reach {
    REACH_COPIES, /* by copy engines: all nodes are in this process (loopback.h) */
    REACH_STAGED, /* by way of pinned memory (stage.h) */
    REACH_DIRECT, /* the transport reads and writes windows itself (rig_direct.c) */
};

struct rig {
    const struct job *job;
    const struct program *program;
    const struct cuda_options *options;
    uint32_t device_count, first_rank, rank_count;
    struct device devices[DEVICES_MAX];
    struct rig_rank *ranks;
    uint32_t crew_workers[PROGRAM_CREWS_MAX]; /* per rank, scaled to the device */
    struct lowered lowered;
    uint8_t *mirror; /* a rank's window on the host, outputs only */
    uint32_t *gate;  /* pinned */
    uint32_t gates;
    struct check_report check;
    uint64_t epoch;                                        /* launched last */
    enum status (*prepare)(struct rig *r, uint64_t epoch); /* called when inputs are written; may be NULL */
    enum status (*enqueue)(struct rig *r);                 /* what an epoch is; NULL: a launch of the interpreter */
    void (*abort)(struct rig *r);                          /* ends what that left on the devices; may be NULL */
    uint64_t epochs_at_once;                               /* that may be enqueued; 0: any number */
    bool traced;                                           /* so is that epoch, and those launched from now on */
    struct gpu_ping *ping;                                 /* pinned; NULL: nothing is to be traced */
    uint64_t stopped_ns;                                   /* when the devices were told to, by the host's clock */
    struct way way;                                        /* these five: where there is a second node */
    enum reach reach;
    bool broken; /* a way to another node, or that node; `why` has the words */
    bool ending; /* the proxies are no longer needed */
    struct proxy_result puts;
    char why[2048]; /* of a status < 0 */
};

/* Of the world's number, which lives here. */
static inline struct rig_rank *rig_rank(const struct rig *r, uint32_t rank)
{
    return &r->ranks[rank - r->first_rank];
}

/* Every function below that returns a status has filled r->why when it is negative, but for rig_wait()'s hangs. */

enum status rig_fail(struct rig *r, enum status st, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Passes CUDA's error up, with its words. */
#define TRY_CUDA(rig, call)                                                                                            \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess)                                                                                     \
            return rig_fail(rig, error_ == cudaErrorMemoryAllocation ? ST_MEMORY : ST_ENVIRONMENT, "cuda: %s: %s",     \
                            #call, cudaGetErrorString(error_));                                                        \
    } while (0)

/* ---- rig_devices.c ---- */

/* Devices the interpreter can run on; 0 with the reason in `why`, which is "" otherwise. */
uint32_t devices_usable(char *why, size_t why_bytes);
enum status rig_open_devices(struct rig *r);
void rig_close_devices(struct rig *r);

/* ---- rig.c ---- */

uint64_t rig_memory_bytes(const struct job *job); /* on the host */
enum status rig_create(const struct job *job, struct rig *r);
/* Safe on whatever create left behind.  It leaves all memory, also *r, alone when it had to leave a thread behind: see
 * way_run_bounded(). */
void rig_destroy(struct rig *r);

/* ---- rig_routes.c ---- */

enum status rig_create_routes(struct rig *r); /* completes lowered.routes */
void rig_destroy_routes(struct rig *r);
/* After epochs: ST_INPUT if a route that must not drop rows had no room for some. */
enum status rig_check_routes(struct rig *r);

/* ---- rig_io.c ---- */

/* Inputs of an epoch on all ranks, enqueued: exact ones, or noise, whose results cannot be checked.
 */
enum status rig_begin(struct rig *r, uint64_t epoch, bool noise);
/* Compares outputs and poisons them: all that the job wants data of, else a sample of blocks. */
enum status rig_end(struct rig *r, uint64_t epoch);
enum status rig_poison(struct rig *r);

/* ---- rig_net.c: nothing where there is one node ---- */

uint64_t rig_net_bytes(const struct job *job); /* on the host, at most */
/* Joins the other nodes and connects to them: how puts go is known then. */
enum status rig_open_net(struct rig *r);
enum status rig_start_proxies(struct rig *r);
/* Returns once every node's process has come here. */
enum status rig_meet(struct rig *r);
/* ST_OK, or what is wrong with a proxy or another node. */
enum status rig_check_net(struct rig *r);
/* Behind the last launch: until all puts are complete, also those that no task waits for. */
enum status rig_await_puts(struct rig *r);
/* At once: nothing that matters is on its way once all nodes have come to the end, or the run has failed.  Fills
 * r->puts.  Safe twice. */
enum status rig_stop_proxies(struct rig *r);
void rig_close_net(struct rig *r);

/* ---- rig_stage.c ---- */

enum status rig_open_stages(struct rig *r, uint32_t depth); /* puts of a rank on their way at a time */

/* ---- rig_direct.c ---- */

enum status rig_create_window(struct rig *r, struct rig_rank *rank); /* on the rank's device, the current one */
void rig_destroy_window(struct rig_rank *rank);
/* Whether the chosen transport and all devices here could do without staging; only opening an endpoint shows it. */
bool rig_direct_possible(const struct rig *r);
void rig_direct_memory(const struct rig *r, struct rig_rank *rank, struct net_memory *window, struct net_memory *flags);

/* ---- rig_trace.c ---- */

enum status rig_create_trace(struct rig *r); /* nothing without a sink; before proxies start */
void rig_destroy_trace(struct rig *r);
/* Before an epoch with `traced`, while the devices rest. */
enum status rig_prepare_trace(struct rig *r);
/* If the epoch launched last was traced; it is over, and so are its proxies. */
cudaError_t rig_tell_trace(const struct rig *r);

/* ---- rig_run.c ---- */

enum status rig_run(struct rig *r, struct run_result *result);
/* One epoch on every device's stream. */
enum status rig_enqueue(struct rig *r);
/* The interpreter on every device's stream, once for each epoch that has tasks. */
enum status rig_launch(struct rig *r);
/* Epochs back to back; the time of all of them, of the host with its launches or of the devices alone. */
enum status rig_run_epochs(struct rig *r, uint64_t epochs, uint64_t *ps_out);

/* ---- rig_watch.c ---- */

/* ST_HANG: nothing moved for the time-out.  Whenever it fails the devices have been stopped. */
enum status rig_wait(struct rig *r);
/* Ends what runs on the devices, as far as they answer; the first error of theirs.  Leaves r->why
 * alone. */
cudaError_t rig_stop(struct rig *r);
void rig_report_hang(struct rig *r, char *out, size_t out_bytes);

#endif
