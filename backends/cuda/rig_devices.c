#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/rig.h"

enum status rig_fail(struct rig *r, enum status st, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->why, sizeof r->why, format, args);
    va_end(args);
    return st;
}

static bool is_hopper(int device)
{
    int major = 0;

    return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major == 9;
}

/* The kernel is built for sm_90a, so a machine's devices have to be Hopper ones; usually all are.
 */
uint32_t devices_usable(char *why, size_t why_bytes)
{
    int count = 0;
    uint32_t usable = 0;
    cudaError_t error;

    why[0] = '\0';
    /* Kernels loaded at their first launch could wait for a device that waits for that launch. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    /* So could launches behind each other in one queue to a GPU, when they are of several of its shares. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        snprintf(why, why_bytes, "no CUDA device: %s", cudaGetErrorString(error));
        return 0;
    }
    while ((int)usable < count && usable < DEVICES_MAX && is_hopper((int)usable))
        usable++;
    if (usable == 0)
        snprintf(why, why_bytes, "the first CUDA device is not a Hopper GPU (compute capability 9.0)");
    return usable;
}

static enum status open_device(struct rig *r, struct device *d)
{
    struct cudaDeviceProp properties;

    TRY_CUDA(r, cudaSetDevice(d->index));
    TRY_CUDA(r, cudaGetDeviceProperties(&properties, d->index));
    snprintf(d->name, sizeof d->name, "%.63s", properties.name);
    d->sms = (uint32_t)(properties.multiProcessorCount / (int)r->options->shares);
    TRY_CUDA(r, cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
    TRY_CUDA(r, cudaStreamCreateWithFlags(&d->side, cudaStreamNonBlocking));
    TRY_CUDA(r, cudaEventCreate(&d->begin));
    TRY_CUDA(r, cudaEventCreate(&d->end));
    TRY_CUDA(r, gpu_interpreter.prepare());
    return ST_OK;
}

/* Signals are additions in the other's memory, which not every link carries. */
static enum status check_peer(struct rig *r, int from, int to)
{
    int reaches = 0, adds = 0;

    TRY_CUDA(r, cudaDeviceCanAccessPeer(&reaches, from, to));
    if (reaches)
        TRY_CUDA(r, cudaDeviceGetP2PAttribute(&adds, cudaDevP2PAttrNativeAtomicSupported, from, to));
    if (reaches && adds)
        return ST_OK;
    return rig_fail(r, ST_ENVIRONMENT, "cuda: device %d cannot %s device %d's memory; devices: 1 puts all ranks on one",
                    from, reaches ? "add atomically in" : "reach", to);
}

static enum status open_peer(struct rig *r, uint32_t from, uint32_t to)
{
    cudaError_t error;

    if (r->devices[from].index == r->devices[to].index)
        return ST_OK;
    TRY(check_peer(r, r->devices[from].index, r->devices[to].index));
    TRY_CUDA(r, cudaSetDevice(r->devices[from].index));
    error = cudaDeviceEnablePeerAccess(r->devices[to].index, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError(); /* an earlier run of this process did it */
        return ST_OK;
    }
    TRY_CUDA(r, error);
    return ST_OK;
}

/* Ranks in order, as evenly as they come. */
static void spread_ranks(struct rig *r)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        r->devices[i].index = (int)(i / r->options->shares);
        r->devices[i].first_rank = (uint32_t)part_begin(r->rank_count, r->device_count, i);
        r->devices[i].rank_count = (uint32_t)part_size(r->rank_count, r->device_count, i);
    }
}

enum status rig_open_devices(struct rig *r)
{
    char why[256];
    uint64_t usable = devices_usable(why, sizeof why);

    if (usable == 0)
        return rig_fail(r, ST_ENVIRONMENT, "cuda: %s", why);
    usable = min_u64(usable * r->options->shares, DEVICES_MAX);
    if (r->options->devices > usable)
        return rig_fail(r, ST_ENVIRONMENT, "cuda: %" PRIu64 " devices are wanted, %" PRIu64 " are here",
                        r->options->devices, usable);
    if (r->options->devices > 0)
        usable = r->options->devices;
    r->device_count = (uint32_t)min_u64(usable, r->rank_count);
    spread_ranks(r);
    for (uint32_t i = 0; i < r->device_count; i++)
        TRY(open_device(r, &r->devices[i]));
    for (uint32_t i = 0; i < r->device_count; i++)
        for (uint32_t k = 0; k < r->device_count; k++)
            if (i != k)
                TRY(open_peer(r, i, k));
    return ST_OK;
}

void rig_close_devices(struct rig *r)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        struct device *d = &r->devices[i];

        cudaSetDevice(d->index);
        for (uint32_t k = 0; k < d->table_count; k++)
            cudaFree(d->tables[k]);
        free(d->workers);
        if (d->begin)
            cudaEventDestroy(d->begin);
        if (d->end)
            cudaEventDestroy(d->end);
        if (d->stream)
            cudaStreamDestroy(d->stream);
        if (d->side)
            cudaStreamDestroy(d->side);
    }
}
