/* One run: devices, the ranks that live on them, and what they share.
 *
 * Ranks are spread over the devices in order; ranks of one device get disjoint CTAs.  A program is
 * lowered once (lower.c) and uploaded; each epoch is one launch of the interpreter on every device.
 *
 *   device_open .. close      rig_devices.c   what CUDA offers here
 *   rig_create, destroy       rig.c           windows, flags, proxies, the lowered program
 *   rig_begin, rig_end        rig_io.c        inputs, checks, poison
 *   rig_start_proxies         rig_net.c       puts between nodes
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
#include "core/backend.h"
#include "core/check.h"

struct cuda_options {
    uint64_t devices; /* at most; 0: all there are */
    uint64_t prefetch;
    uint64_t fifo; /* commands */
    uint64_t timeout_ps;
};

#define DEVICES_MAX 16
#define DEVICE_TABLES_MAX 16

struct device {
    int index;
    char name[64];
    uint32_t sms;
    uint32_t first_rank, rank_count;
    uint32_t worker_count;
    cudaStream_t stream; /* the program */
    cudaStream_t side;   /* looks and orders while it runs */
    cudaEvent_t begin, end;
    struct gpu_program program; /* what a launch gets, but for the epoch */
    struct gpu_worker *workers; /* on the host */
    void *tables[DEVICE_TABLES_MAX]; /* device memory to free */
    uint32_t table_count;
    uint32_t *abort;         /* device */
    uint64_t host_ahead_ns;  /* the host's clock, of the device's timer; wrapping */
    struct gpu_stuck *stuck; /* device */
};

struct rig_rank {
    uint32_t index;
    struct device *device;
    uint8_t *window;        /* device */
    struct gpu_flag *flags; /* device */
    uint64_t *put_flags;    /* pinned, by flag; NULL: the program has no second node */
    uint64_t *counters;     /* device: a pop counter per queue, the FIFO's head, rows dropped */
    uint64_t dropped;       /* the last of these, as last seen */
    uint64_t pops_per_epoch[PROGRAM_QUEUES_MAX];
    uint64_t dealt[PROGRAM_QUEUES_MAX]; /* tasks that workers begin with */
    struct put_fifo fifo; /* these three: where there is a second node */
    struct endpoint *endpoint;
    struct proxy *proxy;
};

struct rig {
    const struct job *job;
    const struct program *program;
    const struct cuda_options *options;
    uint32_t device_count, rank_count;
    struct device devices[DEVICES_MAX];
    struct rig_rank *ranks;
    uint32_t crew_workers[PROGRAM_CREWS_MAX]; /* per rank, scaled to the device */
    struct lowered lowered;
    uint8_t *mirror; /* a rank's window on the host, outputs only */
    uint32_t *gate;  /* pinned */
    uint32_t gates;
    struct check_report check;
    uint64_t epoch; /* launched last */
    bool traced;    /* so is that epoch, and those launched from now on */
    struct gpu_ping *ping; /* pinned; NULL: nothing is to be traced */
    uint64_t stopped_ns;   /* when the devices were told to, by the host's clock */
    char why[2048]; /* of a status < 0 */
};

/* Every function below that returns a status has filled r->why when it is negative. */

enum status rig_fail(struct rig *r, enum status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Passes CUDA's error up, with its words. */
#define TRY_CUDA(rig, call)                                                                        \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess)                                                                 \
            return rig_fail(rig, error_ == cudaErrorMemoryAllocation ? ST_MEMORY : ST_ENVIRONMENT, \
                            "cuda: %s: %s", #call, cudaGetErrorString(error_));                    \
    } while (0)

/* ---- rig_devices.c ---- */

/* Devices the interpreter can run on; 0 with the reason in `why`, which is "" otherwise. */
uint32_t devices_usable(char *why, size_t why_bytes);
enum status rig_open_devices(struct rig *r);
void rig_close_devices(struct rig *r);

/* ---- rig.c ---- */

uint64_t rig_memory_bytes(const struct job *job); /* on the host */
enum status rig_create(const struct job *job, struct rig *r);
void rig_destroy(struct rig *r); /* safe on whatever create left behind */

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

/* ---- rig_net.c ---- */

enum status rig_start_proxies(struct rig *r); /* nothing where there is one node */
enum status rig_check_proxies(struct rig *r);
/* What was pushed is still delivered, unless `now`; adds to *sum.  Safe twice. */
void rig_stop_proxies(struct rig *r, bool now, struct proxy_result *sum);
void rig_close_endpoints(struct rig *r); /* and FIFOs */

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

/* ---- rig_watch.c ---- */

/* ST_HANG: nothing moved for the time-out.  Whenever it fails the devices have been stopped. */
enum status rig_wait(struct rig *r);
/* Ends what runs on the devices, as far as they answer; the first error of theirs.  Leaves r->why
 * alone. */
cudaError_t rig_stop(struct rig *r);
void rig_report_hang(struct rig *r, char *out, size_t out_bytes);

#endif
