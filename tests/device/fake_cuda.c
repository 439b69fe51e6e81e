#include "fake_cuda.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/gpu.h"
#include "core/bf16.h"
#include "core/check.h"
#include "fake_copies.h"
#include "fake_kernel.h"

struct fake_cuda fake_cuda = {.devices = 1, .links_add = true, .refuses = FAKE_NONE, .traps = FAKE_NONE};

#define COMPUTES_AT_MOST_MS 60000

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
    (void)device;
    *value = attribute == cudaDevAttrGPUDirectRDMAWritesOrdering && fake_cuda.ordered
                 ? cudaGPUDirectRDMAWritesOrderingAllDevices
                 : 9;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "fake %d", device);
    p->multiProcessorCount = 32;
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

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int from, int to)
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
    uint64_t launched, completed; /* kernels that compute */
} runs[FAKE_DEVICES_MAX];

static bool is_computing(int device)
{
    return __atomic_load_n(&runs[device].completed, __ATOMIC_ACQUIRE) != runs[device].launched;
}

static cudaError_t state_of(int device)
{
    struct run *r = &runs[device];

    if (fake_cuda.computes)
        return is_computing(device) ? cudaErrorNotReady : cudaSuccess;
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

    for (int ms = 0; fake_cuda.computes && state == cudaErrorNotReady && ms < COMPUTES_AT_MOST_MS; ms++) {
        usleep(1000);
        state = state_of(device);
    }
    if (state != cudaErrorNotReady)
        return state;
    fake_cuda.waits_for_good++;
    runs[device] = (struct run){0};
    return cudaSuccess;
}

/* ---- streams, which are numbers, and events ---- */

/* In the order of creation on a device. */
enum stream_kind { STREAM_PROGRAM, STREAM_SIDE, STREAM_COPIES, STREAM_KINDS };

static int stream_counts[FAKE_DEVICES_MAX];

static int device_of(cudaStream_t stream)
{
    return ((int)(uintptr_t)stream - 1) / STREAM_KINDS;
}

static enum stream_kind kind_of(cudaStream_t stream)
{
    return (enum stream_kind)(((int)(uintptr_t)stream - 1) % STREAM_KINDS);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    int count = stream_counts[current]++;

    (void)flags;
    *stream = (cudaStream_t)(uintptr_t)(1 + STREAM_KINDS * current + (count < STREAM_COPIES ? count : STREAM_COPIES));
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    stream_counts[device_of(stream)]--;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return kind_of(stream) == STREAM_PROGRAM ? state_of(device_of(stream)) : cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (kind_of(stream) == STREAM_COPIES)
        fake_copies_drain();
    return kind_of(stream) == STREAM_PROGRAM ? wait_for(device_of(stream)) : cudaSuccess;
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

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    (void)event;
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
    for (int i = 0; i < FAKE_DEVICES_MAX; i++)
        if (runs[i].gate == address)
            runs[i].gate = NULL;
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

/* The side stream looks at what kernels work with meanwhile, in words. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    const uint32_t *words = from;

    if (fake_cuda.computes && kind_of(stream) == STREAM_COPIES) {
        fake_copies_copy(to, from, bytes);
        return cudaSuccess;
    }
    if (kind_of(stream) != STREAM_SIDE)
        return cudaMemcpy(to, from, bytes, kind);
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        __atomic_store_n((uint32_t *)to + i, __atomic_load_n(&words[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    return cudaSuccess;
}

/* Only timed: nobody looks at what it moves. */
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream)
{
    (void)to, (void)to_device, (void)from, (void)from_device, (void)bytes, (void)stream;
    return cudaSuccess;
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
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

static CUresult stream_write(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
    (void)stream, (void)flags;
    fake_copies_write((uint64_t *)(uintptr_t)address, value);
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    CUresult (*tensor_map)(void) = encode;
    CUresult (*write)(CUstream, CUdeviceptr, cuuint64_t, unsigned) = stream_write;

    (void)version, (void)flags;
    *found = cudaDriverEntryPointSuccess;
    if (strcmp(name, "cuStreamWriteValue64") == 0)
        memcpy(entry, &write, sizeof write);
    else if (strcmp(name, "cuTensorMapEncodeTiled") == 0)
        memcpy(entry, &tensor_map, sizeof tensor_map);
    else
        *found = cudaDriverEntryPointSymbolNotFound; /* no dma-buf */
    return cudaSuccess;
}

/* ---- kernels ---- */

static cudaError_t prepare(void)
{
    return cudaSuccess;
}

struct launched {
    struct gpu_program program;
    struct run *run;
    uint64_t number; /* on its device */
    const uint32_t *gate;
    uint32_t workers, gate_value;
};

static void await_turn(const struct launched *l)
{
    while (__atomic_load_n(&l->run->completed, __ATOMIC_ACQUIRE) + 1 != l->number ||
           (l->gate && (int32_t)(__atomic_load_n(l->gate, __ATOMIC_ACQUIRE) - l->gate_value) < 0))
        usleep(50);
}

static void *compute(void *arg)
{
    struct launched *l = arg;

    await_turn(l);
    fake_kernel_run(&l->program, l->workers);
    __atomic_store_n(&l->run->completed, l->number, __ATOMIC_RELEASE);
    free(l);
    return NULL;
}

static cudaError_t start_computing(const struct gpu_program *p, uint32_t workers, struct run *r)
{
    struct launched *l = malloc(sizeof *l);
    pthread_t thread;

    *l = (struct launched){*p, r, ++r->launched, r->gate, workers, r->gate_value};
    if (pthread_create(&thread, NULL, compute, l) != 0)
        return cudaErrorLaunchOutOfResources;
    pthread_detach(thread);
    return cudaSuccess;
}

static cudaError_t launch(const struct gpu_program *p, uint32_t workers, cudaStream_t stream, char by)
{
    int device = device_of(stream);
    size_t count = strlen(fake_cuda.launches);

    if (device == fake_cuda.refuses)
        return cudaErrorLaunchOutOfResources;
    if (count + 1 < sizeof fake_cuda.launches)
        fake_cuda.launches[count] = by;
    if (fake_cuda.computes)
        return start_computing(p, workers, &runs[device]);
    runs[device].abort = p->abort;
    return cudaSuccess;
}

static cudaError_t launch_untraced(const struct gpu_program *p, unsigned needs, uint32_t workers, cudaStream_t stream)
{
    (void)needs;
    return launch(p, workers, stream, 'u');
}

/* Leaves the first task of the first worker's first queue. */
static cudaError_t launch_traced(const struct gpu_program *p, unsigned needs, uint32_t workers, cudaStream_t stream)
{
    (void)needs;
    p->records[0] = (struct gpu_record){.event = GPU_RAN, .begin.ns = 1000, .end.ns = 2000};
    return launch(p, workers, stream, 't');
}

const struct gpu_interpreter gpu_interpreter = {prepare, launch_untraced};
const struct gpu_interpreter gpu_interpreter_traced = {prepare, launch_traced};

/* Inputs as the host makes them; noise, too. */
cudaError_t gpu_write_input(const struct gpu_input *in, cudaStream_t stream)
{
    int8_t *values = malloc(in->cols + 1);

    (void)stream;
    for (uint64_t row = 0; row < in->rows; row++) {
        uint8_t *at = (uint8_t *)(uintptr_t)in->address + row * in->ld * (in->is_f32 ? 4 : 2);

        tensor_row(in->seed, in->epoch, in->tensor, in->depth ? in->depth : 1, in->tensor_row + row, in->tensor_col,
                   in->cols, values);
        for (uint64_t col = 0; col < in->cols; col++)
            if (in->is_f32)
                ((float *)at)[col] = values[col];
            else
                ((uint16_t *)at)[col] = bf16_from_f32(values[col]);
    }
    free(values);
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

cudaError_t gpu_pick_launch(const struct gpu_pick *p, cudaStream_t stream)
{
    const int32_t *index = (const int32_t *)(uintptr_t)p->index;

    (void)stream;
    for (uint64_t i = 0; i < p->rows; i++)
        memcpy((uint8_t *)(uintptr_t)p->out + i * p->row_bytes,
               (const uint8_t *)(uintptr_t)p->from + (uint64_t)index[i] * p->row_bytes, p->row_bytes);
    return cudaSuccess;
}

cudaError_t gpu_activation_launch(const struct gpu_activation *a, cudaStream_t stream)
{
    (void)stream;
    for (uint64_t i = 0; i < a->rows * a->cols; i++) {
        uint64_t col = i % a->cols, group = col - col % SWIGLU_GROUP, left = a->cols - group;
        const uint16_t *x = (const uint16_t *)(uintptr_t)a->sums + i / a->cols * 2 * a->cols + group + col;
        float gate = f32_from_bf16(x[0]), up = f32_from_bf16(x[left < SWIGLU_GROUP ? left : SWIGLU_GROUP]);

        ((uint16_t *)(uintptr_t)a->out)[i] = bf16_from_f32(gate / (1 + expf(-gate)) * up);
    }
    return cudaSuccess;
}

cudaError_t gpu_combination_launch(const struct gpu_combination *c, cudaStream_t stream)
{
    const int32_t *index = (const int32_t *)(uintptr_t)c->index;
    const float *weight = (const float *)(uintptr_t)c->weight;

    (void)stream;
    for (uint64_t i = 0; i < c->rows * c->cols; i++) {
        float sum = 0;

        for (uint64_t j = i / c->cols * c->terms; j < (i / c->cols + 1) * c->terms; j++)
            if (index[j] != INDEX_DROPPED)
                sum +=
                    weight[j] *
                    f32_from_bf16(((const uint16_t *)(uintptr_t)c->from)[(uint64_t)index[j] * c->cols + i % c->cols]);
        ((uint16_t *)(uintptr_t)c->out)[i] = bf16_from_f32(sum);
    }
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
