/* Raw speed of the engine: a hierarchical all-gather with tiles of compute behind it, no
 * interpreter.
 *
 *   bench_engine [GPUS [CHUNKS [TILES [SPREAD [kernel|s4u]]]]]        1024 1 8 5 kernel
 *
 * Nodes of 8 GPUs.  Each GPU owns CHUNKS chunks of 2 MiB.  A chunk travels the ring of its rail;
 * each GPU it reaches forwards it to the 7 peers of its node, one flow at a time per peer.  Every
 * chunk that arrives on a GPU feeds TILES tiles to its 116 SMs.  SPREAD: percent by which sizes and
 * tile times vary at random, so that nothing coincides (0: all symmetric, the easy case). */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sim/engine.h"

#define NODE_GPUS 8
#define SMS 116
#define CHUNK_BYTES (2u << 20)
#define TILE_PS 89478485 /* 128 x 256 x 8192 at 6 TFLOP/s an SM */

struct fifo {
    uint32_t *chunks;
    uint32_t head, tail;
    bool busy;
};

struct gpu {
    struct fifo peers[NODE_GPUS], rail;
    uint64_t tiles_ready, tiles_done;
    uint32_t busy_sms;
};

struct bench {
    struct engine *engine;
    uint32_t gpus, chunks, tiles, spread;
    uint64_t random;
    struct gpu *gpu;
};

static uint64_t spread(struct bench *b, uint64_t value)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    uint64_t range = value * b->spread / 100;
    return range > 0 ? value - range / 2 + (b->random >> 20) % range : value;
}

static void fifo_push(const struct bench *b, struct fifo *f, uint32_t chunk)
{
    if (f->chunks == NULL)
        f->chunks = calloc(b->gpus / NODE_GPUS * b->chunks, sizeof(f->chunks[0]));
    assert(f->chunks != NULL);
    f->chunks[f->tail++] = chunk;
}

static void tile_done(void *arg, uint64_t gpu, uint64_t unused);

static void tiles_start(struct bench *b, uint64_t gpu)
{
    struct gpu *g = &b->gpu[gpu];

    for (; g->tiles_ready > 0 && g->busy_sms < SMS; g->tiles_ready--, g->busy_sms++)
        engine_after(b->engine, spread(b, TILE_PS), tile_done, b, gpu, 0);
}

static void tile_done(void *arg, uint64_t gpu, uint64_t unused)
{
    struct bench *b = arg;

    (void)unused;
    b->gpu[gpu].busy_sms--;
    b->gpu[gpu].tiles_done++;
    tiles_start(b, gpu);
}

static void chunk_arrived(struct bench *b, uint64_t gpu)
{
    b->gpu[gpu].tiles_ready += b->tiles;
    tiles_start(b, gpu);
}

static void peer_send(struct bench *b, uint32_t gpu, uint32_t peer);

static void peer_done(void *arg, uint64_t gpu, uint64_t peer)
{
    struct bench *b = arg;

    b->gpu[gpu].peers[peer].busy = false;
    chunk_arrived(b, gpu / NODE_GPUS * NODE_GPUS + peer);
    peer_send(b, (uint32_t)gpu, (uint32_t)peer);
}

static void peer_send(struct bench *b, uint32_t gpu, uint32_t peer)
{
    struct fifo *f = &b->gpu[gpu].peers[peer];

    if (f->busy || f->head == f->tail)
        return;
    f->head++;
    f->busy = true;
    engine_flow(b->engine, gpu, gpu / NODE_GPUS * NODE_GPUS + peer, spread(b, CHUNK_BYTES), 0, peer_done, b, gpu, peer);
}

static void rail_send(struct bench *b, uint32_t gpu);

/* `chunk` is on `gpu` by its own rail: pass it on along the ring and to the peers. */
static void rail_arrived(struct bench *b, uint32_t gpu, uint32_t chunk)
{
    if ((gpu + NODE_GPUS) % b->gpus != chunk / b->chunks) {
        fifo_push(b, &b->gpu[gpu].rail, chunk);
        rail_send(b, gpu);
    }
    for (uint32_t peer = 0; peer < NODE_GPUS; peer++) {
        if (peer == gpu % NODE_GPUS)
            continue;
        fifo_push(b, &b->gpu[gpu].peers[peer], chunk);
        peer_send(b, gpu, peer);
    }
    chunk_arrived(b, gpu);
}

static void rail_done(void *arg, uint64_t gpu, uint64_t chunk)
{
    struct bench *b = arg;

    b->gpu[gpu].rail.busy = false;
    rail_arrived(b, (uint32_t)(gpu + NODE_GPUS) % b->gpus, (uint32_t)chunk);
    rail_send(b, (uint32_t)gpu);
}

static void rail_send(struct bench *b, uint32_t gpu)
{
    struct fifo *f = &b->gpu[gpu].rail;

    if (f->busy || f->head == f->tail)
        return;
    f->busy = true;
    engine_flow(b->engine, b->gpus + gpu, b->gpus + (gpu + NODE_GPUS) % b->gpus, spread(b, CHUNK_BYTES), 0, rail_done,
                b, gpu, f->chunks[f->head++]);
}

static struct engine *make_engine(uint32_t gpus, enum engine_api api)
{
    struct engine_port *ports = calloc(2 * gpus, sizeof(ports[0]));
    struct engine *e;

    assert(ports != NULL);
    for (uint32_t i = 0; i < gpus; i++) {
        ports[i] = (struct engine_port){.rate = 450e9, .latency_ps = 1000000};
        ports[gpus + i] = (struct engine_port){.rate = 50e9, .latency_ps = 3000000};
    }
    struct engine_config config = {.api = api, .ports = ports, .port_count = 2 * gpus};
    if (engine_create(&config, &e) < 0)
        exit(5);
    free(ports);
    return e;
}

static void report(const struct bench *b)
{
    struct rusage use;
    uint64_t tiles = 0;

    getrusage(RUSAGE_SELF, &use);
    for (uint32_t i = 0; i < b->gpus; i++)
        tiles += b->gpu[i].tiles_done;
    assert(tiles == (uint64_t)b->gpus * b->gpus * b->chunks * b->tiles);
    printf("%s: %u GPUs, %u chunks, spread %u %%: simulated %.6f ms, %llu flows, %llu tiles, "
           "%.2f CPU s, %ld MB\n",
           engine_model(b->engine), b->gpus, b->chunks, b->spread, (double)engine_now_ps(b->engine) * 1e-9,
           (unsigned long long)engine_flow_count(b->engine), (unsigned long long)tiles,
           (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
               (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6,
           use.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
    struct bench b = {.random = 88172645463325252u};

    b.gpus = argc > 1 ? (uint32_t)atoi(argv[1]) / NODE_GPUS * NODE_GPUS : 1024;
    b.chunks = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    b.tiles = argc > 3 ? (uint32_t)atoi(argv[3]) : 8;
    b.spread = argc > 4 ? (uint32_t)atoi(argv[4]) : 5;
    if (b.gpus == 0 || b.chunks == 0) {
        fprintf(stderr, "usage: bench_engine [GPUS [CHUNKS [TILES [SPREAD [kernel|s4u]]]]]\n");
        return 2;
    }
    b.engine = make_engine(b.gpus, argc > 5 && strcmp(argv[5], "s4u") == 0 ? ENGINE_S4U : ENGINE_AUTO);
    b.gpu = calloc(b.gpus, sizeof(b.gpu[0]));
    assert(b.gpu != NULL);
    for (uint32_t chunk = 0; chunk < b.gpus * b.chunks; chunk++)
        rail_arrived(&b, chunk / b.chunks, chunk);
    engine_run(b.engine);
    report(&b);
    engine_destroy(b.engine);
    return 0; /* the FIFOs live as long as the process */
}
