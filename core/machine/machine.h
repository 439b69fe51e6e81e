/* A cluster as the simulator knows it: one YAML file in scenarios/machines.  A file may name another machine as its
 * `base` and hold only what differs.
 *
 * Times are picoseconds, rates bytes per second, per direction.  The key table in machine.c gives each
 * value's default, unit and meaning; the files give its source. */
#ifndef CORE_MACHINE_MACHINE_H
#define CORE_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/parse/option.h"
#include "core/status.h"
#include "core/world.h"

#define MACHINE_TABLE_MAX 8

/* Time of one 128 x 256 x 64 step as a function of how long the GPU has been computing: the power cap
 * lowers the clock of long runs.  Interpolated linearly in between, constant outside. */
struct step_cost {
    uint64_t duration_ps; /* of the whole GEMM */
    uint64_t step_ps;
};

enum nic_kind {
    NIC_RC,  /* reliable connection: puts of one queue pair arrive in order */
    NIC_SRD, /* EFA: reliable, unordered */
};

struct machine {
    char name[OPTION_TEXT_BYTES]; /* the file's name without .yaml */
    char title[OPTION_TEXT_BYTES];
    char model_error[OPTION_TEXT_BYTES]; /* of simulated against measured fused times; "": not known */
    bool derived;                        /* its file names a base, and cannot be one itself */
    uint64_t nodes_max;
    uint64_t gpus_per_node;

    struct {
        char model[OPTION_TEXT_BYTES]; /* "H200" */
        uint64_t sms;
        uint64_t memory_bytes;
        double memory_rate; /* HBM, reads plus writes of a kernel on all SMs; 0: no limit of its own */
    } gpu;

    struct { /* one SM's tensor work on a tile of tile_m x tile_n, in steps of step_k */
        uint64_t tile_m, tile_n, step_k;
        uint64_t fixed_ps;  /* per tile: prologue, and what of the epilogue is not hidden */
        uint64_t flush_ps;  /* last step to result in memory, while the SM goes on: what others wait for */
        uint64_t swiglu_ps; /* more where gate and up sums become an activation */
        uint32_t step_count;
        struct step_cost steps[MACHINE_TABLE_MAX]; /* rising duration */
    } gemm;

    struct { /* one SM's attention on a tile of queries, in steps of step_keys keys, per head dimension */
        uint64_t tile_queries, step_keys;
        uint64_t fixed_ps; /* per task: prologue and epilogue that nothing hides */
        uint64_t carry_ps; /* more where a task takes up an earlier one's result and leaves its own */
        uint64_t step_64_ps, step_128_ps;
    } attention;

    struct { /* one CTA that copies through the bulk engine; a copy costs fixed + bytes / rate */
        double push_rate, pull_rate;
        uint64_t drained_ps;   /* fixed part when the next task has to wait for this one */
        uint64_t pipelined_ps; /* fixed part when copies follow each other */
        double reduce_rate;    /* bytes moved (sources read + result written) per second by a reducing CTA */
    } copy;

    struct {
        uint64_t dispatch_ps; /* pop and decode of a task that was not fetched ahead */
        uint64_t local_ps;    /* signal to a wait on the same GPU */
        uint64_t peer_ps;     /* signal to a wait over NVLink */
    } flag;

    struct {
        uint64_t launch_ps; /* host to first instruction, one kernel */
        uint64_t issue_ps;  /* host time between two launches on one stream */
        uint64_t event_ps;  /* hop from one stream to another */
    } host;

    struct {
        double rate; /* what one GPU can send (and receive) at once, all links together */
        uint64_t latency_ps;
        bool multicast;     /* switch replicates stores (NVLink SHARP) */
        bool reduce;        /* switch adds what a load finds on all GPUs of the node */
        double engine_rate; /* copy engine, one peer */
        uint64_t engine_ps; /* fixed cost of one engine copy */
    } nvlink;

    struct {
        uint64_t per_gpu;
        double rate;         /* one NIC */
        uint64_t latency_ps; /* post to arrival of a small message, wire and switches included */
        uint64_t message_ps; /* NIC time per message that nothing else of that NIC overlaps */
        uint32_t kind;       /* enum nic_kind */
    } nic;

    struct {                    /* what runs programs, against the library on the same GPU */
        double gemm, attention; /* time of a step over the library's */
        double attention_64;    /* of attention at head dimension 64 */
    } program;

    struct {              /* the baselines, against what was measured of the library alone */
        double attention; /* time of a step over attention.step */
        double exchange;  /* share of the links' rates that grouped send / receive reaches */
        bool dedup;       /* tokens go once to each node where that is faster; else a row for each expert */
    } library;

    struct {                 /* GPU-driven puts: FIFO in pinned host memory, drained by a proxy thread */
        uint64_t push_ps;    /* worker's time to write one command */
        uint64_t notice_ps;  /* from written to seen by the proxy */
        uint64_t post_ps;    /* proxy's time per command */
        uint64_t fifo_depth; /* commands */
    } proxy;

    struct {                     /* inputs of the NCCL model, docs/nccl-model.md */
        uint32_t generation;     /* enum nccl_generation's order: volta|ampere|hopper|blackwell */
        uint32_t cpu;            /* intel|amd|other */
        uint64_t net_latency_ps; /* what the NIC declares to NCCL */
        bool nvls;
        uint64_t ring_channels_1node, ring_channels;     /* found by the graph search, before doubling */
        double ring_intra_1node, ring_intra, ring_inter; /* bytes/s per channel */
        uint64_t nvls_heads;
        double nvls_intra, nvls_inter;
    } nccl;

    struct {                        /* constants of NCCL's flow simulation, docs/nccl-model.md; of one CTA a channel */
        uint64_t call_ps;           /* host's time for a call, where that is longer than all of it */
        uint64_t start_ps;          /* launch to the first operation, and from the last to the end */
        uint64_t hop_ll_ps;         /* LL: from stored to seen by the peer; LL128 takes twice that */
        uint64_t hop_ps;            /* Simple: fence and flag, from a peer to the next */
        uint64_t step_ps;           /* Simple: a CTA's time for a slice, whatever its size */
        double copy_rate;           /* what one CTA copies, by loads and stores in a loop of its own */
        double link_rate;           /* what a GPU's NVLinks carry under NCCL */
        double nvls_rate;           /* the same while the switch reduces and multicasts */
        uint64_t nvls_step_ps;      /* of a chunk there */
        uint64_t net_ll_ps, net_ps; /* a hop between nodes: proxy, NIC, wire; Simple: and flush */
        double net_rate;            /* what one channel's connection to another node carries */
    } nccl_flow;
};

/* The key table of machine files, for `machine new` and docs. */
extern const struct option machine_options[];

/* Loads `name` ("hgx-h200-cx7", looked up in the machines folders) or a path ending in .yaml.  Errors are
 * logged with file:line:column. */
enum status machine_load(const char *name, struct machine *out);

/* Where `name` is: a path ending in .yaml is taken relative to `near` (a folder, may be NULL) or
 * else to the current folder; a bare name is looked up in $MKERNEL_MACHINES, NEAR/../machines,
 * NEAR/machines, scenarios/machines and those of shipped_folder(), in this order.  On ST_INPUT
 * `why` says what was expected. */
enum status machine_find(const char *name, const char *near, char *path_out, size_t path_bytes, char *why,
                         size_t why_bytes);
enum status machine_load_file(const char *path, struct machine *out);
/* The same for text that is already in memory; `path` names it in messages. */
enum status machine_parse(const char *path, const char *text, size_t text_bytes, struct machine *out);

/* Calls fn for every machine file in those folders, each folder in order of name; of files with one
 * name the first alone. */
typedef void machine_fn(void *arg, const char *name, const char *path);
void machine_each(const char *near, machine_fn *fn, void *arg);

/* Writes a commented machine file built from *m, whole or not at all; used by `machine new`.
 * `origin` is a comment for its head, of one or several lines, that says where values come from.
 * An existing file is never overwritten.  `path` NULL: to stdout. */
enum status machine_write(const struct machine *m, const char *origin, const char *path);

/* ST_INPUT with a reason when the machine cannot hold `w`. */
enum status machine_holds(const struct machine *m, struct world w, char *why, size_t why_bytes);

/* Time of one step of attention at that head dimension, which lies from 64 to 128. */
uint64_t machine_attention_step_ps(const struct machine *m, uint64_t head_dim);
/* The same of the kernel that runs programs. */
uint64_t machine_program_attention_step_ps(const struct machine *m, uint64_t head_dim);

/* Time of one k step in a GEMM that keeps all SMs busy for about duration_ps. */
uint64_t machine_gemm_step_ps(const struct machine *m, uint64_t duration_ps);

#endif
