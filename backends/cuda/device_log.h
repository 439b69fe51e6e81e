/* What traced launches left in device memory, as entries of a trace log (core/trace/trace_log.h).  Plain
 * data in and out.
 *
 * A CTA is one worker, but its roles work side by side, each with records of its own.  Told is one
 * thing at a time, in the order in which the worker took its tasks: a task begins where the one
 * before ends, or later, and of waits at entry only that part is told for which the worker had
 * nothing else to do. */
#ifndef BACKENDS_CUDA_DEVICE_LOG_H
#define BACKENDS_CUDA_DEVICE_LOG_H

#include <stdint.h>

#include "backends/cuda/words.h"
#include "core/program.h"
#include "core/trace/trace_log.h"

/* Turns stamps of one SM into the host's time.  Certain is the tick of the device's timer; where in
 * its tick a stamp lies follows from the SM's clock, as far as that ran evenly. */
struct device_clock {
    struct gpu_stamp origin;
    double ns_per_cycle; /* 0: not known, and all is at the beginning of its tick */
    uint64_t tick_ns;
    uint64_t host_ahead_ns; /* of the device's timer, wrapping */
};

struct device_clock device_clock_of(const struct gpu_log *log, uint64_t tick_ns, uint64_t host_ahead_ns);
/* Stamps that follow each other on an SM never come out in reverse. */
uint64_t device_clock_ns(const struct device_clock *c, const struct gpu_stamp *s);

/* When a put had arrived, by the host's clock; 0: nobody has seen it arrive. */
typedef uint64_t put_arrival_fn(const void *arg, uint32_t rank, uint32_t queue, uint64_t index);

/* One worker's. */
struct device_log {
    const struct program *program;
    uint64_t epoch;
    struct trace_lane lane;
    struct device_clock clock;
    const struct gpu_log *head;
    const struct gpu_record *records; /* up to one of GPU_NO_EVENT */
    uint64_t records_max;
    uint64_t aborted_ns; /* the host's time: when waits without an end were over */
    put_arrival_fn *put_arrival;
    const void *put_arg;
};

/* Adds the worker's entries; a signal's value is what it adds, its begin_ns when it was out. */
void device_log_read(const struct device_log *x, struct trace_log *out);

/* Once all workers of the world have been read: gives signals the value that they left, in the
 * order of their times, and those of flags that lost some none at all. */
void device_log_settle(const struct program *p, uint64_t epoch, struct trace_log *out);

#endif
