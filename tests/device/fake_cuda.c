#include "fake_cuda.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/gpu.h"
#include "core/bf16.h"
#include "core/check.h"

struct fake_cuda fake_cuda = {
    .devices = 1, .links_add = true, .refuses = FAKE_NONE, .traps = FAKE_NONE};

static __thread int current;

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = fake_cuda.devices;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    current = device;
    return device < fake_cuda.devices ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)attribute, (void)device;
    *value = 9;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "fake %d", device);
    p->multiProcessorCount = 16;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *address, int bytes, int device)
{
    (void)address, (void)bytes, (void)device;
    return cudaErrorInvalidValue;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    (void)device, (void)peer;
    *can = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int from,
                                      int to)
{
    (void)attribute, (void)from, (void)to;
    *value = fake_cuda.links_add;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)peer, (void)flags;
    return cudaSuccess;
}

/* ---- what runs on each ---- */

static struct run {
    const uint32_t *abort; /* of the kernel; NULL: none */
    const uint32_t *gate;  /* of what stands before it; NULL: nothing */
    uint32_t gate_value;
} runs[FAKE_DEVICES_MAX];

static cudaError_t state_of(int device)
{
    struct run *r = &runs[device];

    if (r->gate && (int32_t)(*r->gate - r->gate_value) < 0)
        return cudaErrorNotReady;
    r->gate = NULL;
    if (r->abort && device == fake_cuda.traps)
        return cudaErrorLaunchFailure;
    if (r->abort && fake_cuda.endless && *r->abort == 0)
        return cudaErrorNotReady;
    fake_cuda.stopped[device] = fake_cuda.stopped[device] || (r->abort && fake_cuda.endless);
    r->abort = NULL;
    return cudaSuccess;
}

/* Nothing comes to an end while somebody waits: the host has one thread. */
static cudaError_t wait_for(int device)
{
    cudaError_t state = state_of(device);

    if (state != cudaErrorNotReady)
        return state;
    fake_cuda.waits_for_good++;
    runs[device] = (struct run){0};
    return cudaSuccess;
}

/* ---- streams, which are their device's number, and events ---- */

static cudaStream_t stream_of(int device, bool side)
{
    return (cudaStream_t)(uintptr_t)(1 + 2 * device + side);
}

static int device_of(cudaStream_t stream)
{
    return ((int)(uintptr_t)stream - 1) / 2;
}

static bool is_side(cudaStream_t stream)
{
    return ((int)(uintptr_t)stream - 1) % 2;
}

/* The first of a device is the program's. */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    static bool has[FAKE_DEVICES_MAX];

    (void)flags;
    *stream = stream_of(current, has[current]);
    has[current] = true;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return is_side(stream) ? cudaSuccess : state_of(device_of(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return is_side(stream) ? cudaSuccess : wait_for(device_of(stream));
}

cudaError_t cudaDeviceSynchronize(void)
{
    return wait_for(current);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = malloc(1);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    return cudaEventCreate(event);
}

/* What it waits for was done at once. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)event, (void)stream;
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    (void)begin, (void)end;
    *ms = fake_cuda.elapsed_ms ? fake_cuda.elapsed_ms() : 1;
    return cudaSuccess;
}

/* ---- memory ---- */

static cudaError_t allocate(void **address, size_t bytes)
{
    *address = malloc(bytes + 1);
    return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Whose memory it is, nobody knows here: so every device has to have come to an end. */
static cudaError_t release(void *address)
{
    for (int i = 0; address && i < fake_cuda.devices; i++)
        wait_for(i);
    free(address);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    return allocate(address, bytes);
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(address, bytes);
}

cudaError_t cudaFree(void *address)
{
    return release(address);
}

cudaError_t cudaFreeHost(void *address)
{
    return release(address);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    memset(to, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return cudaMemset(to, value, bytes);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    if (bytes > 0)
        memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    for (size_t i = 0; i < height; i++)
        cudaMemcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width, kind);
    return cudaSuccess;
}

/* ---- errors, the driver ---- */

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorLaunchFailure ? "a kernel failed" : "refused";
}

static CUresult encode(void)
{
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    CUresult (*function)(void) = encode;

    (void)name, (void)version, (void)flags;
    memcpy(entry, &function, sizeof function);
    *found = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

/* ---- kernels ---- */

static cudaError_t prepare(void)
{
    return cudaSuccess;
}

static cudaError_t launch(const struct gpu_program *p, cudaStream_t stream, char by)
{
    int device = device_of(stream);

    if (device == fake_cuda.refuses)
        return cudaErrorLaunchOutOfResources;
    runs[device].abort = p->abort;
    fake_cuda.launches[strlen(fake_cuda.launches)] = by;
    return cudaSuccess;
}

static cudaError_t launch_untraced(const struct gpu_program *p, bool attends, uint32_t workers,
                                   cudaStream_t stream)
{
    (void)attends, (void)workers;
    return launch(p, stream, 'u');
}

/* Leaves the first task of the first worker's first queue. */
static cudaError_t launch_traced(const struct gpu_program *p, bool attends, uint32_t workers,
                                 cudaStream_t stream)
{
    (void)attends, (void)workers;
    p->records[0] = (struct gpu_record){.event = GPU_RAN, .begin.ns = 1000, .end.ns = 2000};
    return launch(p, stream, 't');
}

const struct gpu_interpreter gpu_interpreter = {prepare, launch_untraced};
const struct gpu_interpreter gpu_interpreter_traced = {prepare, launch_traced};

/* Exact bf16 inputs as the host makes them; noise is ones. */
cudaError_t gpu_write_input(const struct gpu_input *in, cudaStream_t stream)
{
    int8_t *row = malloc(in->cols);

    (void)stream;
    memset(row, 1, in->cols);
    for (uint64_t i = 0; i < in->rows && !in->is_f32; i++) {
        if (in->depth > 0)
            tensor_row(in->seed, in->epoch, in->tensor, in->depth, in->tensor_row + i, in->tensor_col, in->cols, row);
        for (uint64_t k = 0; k < in->cols; k++)
            ((uint16_t *)(uintptr_t)in->address)[i * in->ld + k] = bf16_from_f32(row[k]);
    }
    free(row);
    return cudaSuccess;
}

static uint16_t sum_at(const struct gpu_sum *s, uint64_t i)
{
    const uint16_t *rest = (const uint16_t *)(uintptr_t)s->rest;
    float sum = f32_from_bf16(((const uint16_t *)(uintptr_t)s->first)[i]);

    for (uint64_t k = 0; k < s->count; k++)
        sum += f32_from_bf16(rest[k * s->stride + i]);
    return bf16_from_f32(sum);
}

cudaError_t gpu_sum_launch(const struct gpu_sum *s, cudaStream_t stream)
{
    (void)stream;
    for (uint64_t i = 0; i < s->elements; i++)
        ((uint16_t *)(uintptr_t)s->out)[i] = sum_at(s, i);
    return cudaSuccess;
}

cudaError_t gpu_gate_launch(const uint32_t *word, uint32_t value, cudaStream_t stream)
{
    runs[device_of(stream)].gate = word;
    runs[device_of(stream)].gate_value = value;
    return cudaSuccess;
}

struct questions {
    struct gpu_ping *ping;
    uint32_t rounds;
};

static void *answer(void *arg)
{
    struct questions q = *(struct questions *)arg;

    free(arg);
    for (uint32_t i = 1; i <= q.rounds; i++) {
        while (__atomic_load_n(&q.ping->asked, __ATOMIC_ACQUIRE) != i)
            ;
        q.ping->ns = 1000;
        __atomic_store_n(&q.ping->answered, i, __ATOMIC_RELEASE);
    }
    return NULL;
}

cudaError_t gpu_ping_launch(struct gpu_ping *p, uint32_t rounds, cudaStream_t stream)
{
    struct questions *q = malloc(sizeof *q);
    pthread_t thread;

    (void)stream;
    *q = (struct questions){p, rounds};
    if (pthread_create(&thread, NULL, answer, q) != 0)
        return cudaErrorUnknown;
    pthread_detach(thread);
    return cudaSuccess;
}
