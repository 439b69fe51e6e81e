#include "core/machine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/keys.h"
#include "core/parse/yaml.h"
#include "core/parse/yaml_file.h"

#define ROW(key, kind, member, ...)                                                                                    \
    {                                                                                                                  \
        .name = key, .type = OPTION_##kind, .offset = offsetof(struct machine, member), __VA_ARGS__                    \
    }
#define TIME_MAX_PS 1e12 /* one second: nothing a machine file describes takes longer */
#define TIME_RANGE .min = 0, .max = TIME_MAX_PS
#define RATE_NEEDED .min = 1e6, .max = 1e15
#define RATE_OR_NONE .initial = "0B/s", .min = 0, .max = 1e15

const struct option machine_options[] = {
    ROW("title", TEXT, title, .initial = "", .help = "one line for `mkernel list machines`"),
    ROW("model_error", TEXT, model_error, .initial = "",
        .help = "simulated against measured fused times, as reports quote it; empty: not known"),
    ROW("nodes_max", COUNT, nodes_max, .initial = "1", .min = 1, .max = 65536, .help = "nodes a world may have"),
    ROW("gpus_per_node", COUNT, gpus_per_node, .initial = "1", .min = 1, .max = 1024,
        .help = "GPUs in one NVLink domain"),

    ROW("gpu.model", TEXT, gpu.model, .help = "GPU model"),
    ROW("gpu.sms", COUNT, gpu.sms, .min = 1, .max = 4096, .help = "streaming multiprocessors"),
    ROW("gpu.memory", SIZE, gpu.memory_bytes, .min = 1e6, .max = 1e15,
        .help = "device memory; what a program keeps there has to fit"),
    ROW("gpu.memory_rate", RATE, gpu.memory_rate, RATE_OR_NONE,
        .help = "device memory, reads plus writes of a kernel on all SMs; 0: no limit of its own"),

    ROW("gemm.tile_m", COUNT, gemm.tile_m, .initial = "128", .min = 8, .max = 4096, .help = "rows of a tile of C"),
    ROW("gemm.tile_n", COUNT, gemm.tile_n, .initial = "256", .min = 8, .max = 4096, .help = "columns of a tile of C"),
    ROW("gemm.step_k", COUNT, gemm.step_k, .initial = "64", .min = 8, .max = 4096, .help = "depth of one step"),
    ROW("gemm.fixed", TIME, gemm.fixed_ps, TIME_RANGE,
        .help = "per tile: prologue and the part of the epilogue that nothing hides"),
    ROW("gemm.flush", TIME, gemm.flush_ps, TIME_RANGE, .initial = "0ps",
        .help = "from a tile's last step until its result is stored, while the SM goes on"),
    ROW("gemm.swiglu", TIME, gemm.swiglu_ps, TIME_RANGE, .initial = "1.2us",
        .help = "more for a tile whose sums are gate and up of an activation"),

    ROW("attention.tile_queries", COUNT, attention.tile_queries, .initial = "128", .min = 8, .max = 4096,
        .help = "queries of a tile"),
    ROW("attention.step_keys", COUNT, attention.step_keys, .initial = "128", .min = 8, .max = 4096,
        .help = "keys of one step"),
    ROW("attention.fixed", TIME, attention.fixed_ps, TIME_RANGE, .initial = "1.1us",
        .help = "per task: prologue and the part of the epilogue that nothing hides"),
    ROW("attention.carry", TIME, attention.carry_ps, TIME_RANGE, .initial = "2us",
        .help = "more for a task that takes up the result of an earlier one"),
    ROW("attention.step_64", TIME, attention.step_64_ps, TIME_RANGE, .initial = "1.106us",
        .help = "one step at head dimension 64; defaults are an H200's"),
    ROW("attention.step_128", TIME, attention.step_128_ps, TIME_RANGE, .initial = "1.66us",
        .help = "one step at head dimension 128"),

    ROW("copy.push_rate", RATE, copy.push_rate, RATE_NEEDED, .help = "one CTA, storing to a peer"),
    ROW("copy.pull_rate", RATE, copy.pull_rate, RATE_NEEDED, .help = "one CTA, loading from a peer"),
    ROW("copy.drained", TIME, copy.drained_ps, TIME_RANGE,
        .help = "fixed part of a copy when the next task waits for it"),
    ROW("copy.pipelined", TIME, copy.pipelined_ps, TIME_RANGE, .help = "fixed part when copies follow each other"),
    ROW("copy.reduce_rate", RATE, copy.reduce_rate, RATE_NEEDED,
        .help = "one reducing CTA: bytes read plus bytes written"),

    ROW("flag.dispatch", TIME, flag.dispatch_ps, TIME_RANGE,
        .help = "pop and decode of a task that was not fetched ahead"),
    ROW("flag.local", TIME, flag.local_ps, TIME_RANGE, .help = "signal to wait on one GPU"),
    ROW("flag.peer", TIME, flag.peer_ps, TIME_RANGE, .help = "signal to wait over NVLink"),

    ROW("host.launch", TIME, host.launch_ps, TIME_RANGE,
        .help = "from the host's call to a kernel's first instruction"),
    ROW("host.issue", TIME, host.issue_ps, TIME_RANGE, .help = "host time between two launches on one stream"),
    ROW("host.event", TIME, host.event_ps, TIME_RANGE, .help = "hop from one stream to another by an event"),

    ROW("nvlink.rate", RATE, nvlink.rate, RATE_OR_NONE,
        .help = "what one GPU sends (and receives) at once, all links together"),
    ROW("nvlink.latency", TIME, nvlink.latency_ps, .initial = "0ps", TIME_RANGE,
        .help = "of the first byte, GPU to GPU"),
    ROW("nvlink.multicast", BOOL, nvlink.multicast, .initial = "false",
        .help = "the switch replicates stores (NVLink SHARP)"),
    ROW("nvlink.reduce", BOOL, nvlink.reduce, .initial = "false",
        .help = "the switch adds what a load finds on all GPUs of the node (NVLink SHARP)"),
    ROW("nvlink.engine_rate", RATE, nvlink.engine_rate, RATE_OR_NONE, .help = "copy engine, to or from one peer"),
    ROW("nvlink.engine", TIME, nvlink.engine_ps, .initial = "0ps", TIME_RANGE, .help = "fixed cost of one engine copy"),

    ROW("nic.per_gpu", COUNT, nic.per_gpu, .initial = "0", .min = 0, .max = 16, .help = "NICs on a GPU's rail"),
    ROW("nic.rate", RATE, nic.rate, RATE_OR_NONE, .help = "payload rate of one NIC, each way"),
    ROW("nic.latency", TIME, nic.latency_ps, .initial = "0ps", TIME_RANGE,
        .help = "post to arrival of a small message, wire and switches included"),
    ROW("nic.message", TIME, nic.message_ps, .initial = "0ps", TIME_RANGE,
        .help = "NIC time per message that nothing of that NIC overlaps"),
    ROW("nic.kind", CHOICE, nic.kind, .initial = "rc", .choices = "rc|srd",
        .help = "rc: a queue pair's puts arrive in order; srd: reliable, unordered (EFA)"),

    ROW("proxy.push", TIME, proxy.push_ps, .initial = "0ps", TIME_RANGE,
        .help = "worker's time to write one command to the host's FIFO"),
    ROW("proxy.notice", TIME, proxy.notice_ps, .initial = "0ps", TIME_RANGE,
        .help = "from written to seen by the proxy thread"),
    ROW("proxy.post", TIME, proxy.post_ps, .initial = "0ps", TIME_RANGE, .help = "proxy's time per command"),
    ROW("proxy.fifo_depth", COUNT, proxy.fifo_depth, .initial = "2048", .min = 1, .max = 1e6,
        .help = "commands that fit into the FIFO"),

    ROW("program.gemm", NUMBER, program.gemm, .initial = "1", .min = 0.1, .max = 10,
        .help = "a GEMM step of the kernel that runs programs, over the library's"),
    ROW("program.attention", NUMBER, program.attention, .initial = "1", .min = 0.1, .max = 10,
        .help = "the same of an attention step"),
    ROW("program.attention_64", NUMBER, program.attention_64, .initial = "1", .min = 0.1, .max = 10,
        .help = "the same at head dimension 64"),
    ROW("library.attention", NUMBER, library.attention, .initial = "1", .min = 0.1, .max = 10,
        .help = "an attention step of the library that baselines use, over attention.step"),
    ROW("library.exchange", NUMBER, library.exchange, .initial = "1", .min = 0.01, .max = 1,
        .help = "share of the links' rates that grouped send / receive reaches"),
    ROW("library.dedup", BOOL, library.dedup, .initial = "true",
        .help = "tokens go once to each node where that is faster; false: a row for each expert always"),

    ROW("nccl.generation", CHOICE, nccl.generation, .initial = "hopper", .choices = "volta|ampere|hopper|blackwell",
        .help = "GPU generation in NCCL's tables"),
    ROW("nccl.cpu", CHOICE, nccl.cpu, .initial = "intel", .choices = "intel|amd|other", .help = "host processor"),
    ROW("nccl.net_latency", TIME, nccl.net_latency_ps, .initial = "0ps", TIME_RANGE,
        .help = "latency that the NIC declares to NCCL"),
    ROW("nccl.nvls", BOOL, nccl.nvls, .initial = "false", .help = "NVLS algorithms are on"),
    ROW("nccl.ring_channels_1node", COUNT, nccl.ring_channels_1node, .initial = "0", .min = 0, .max = 64,
        .help = "ring channels found on one node, before doubling"),
    ROW("nccl.ring_channels", COUNT, nccl.ring_channels, .initial = "0", .min = 0, .max = 64,
        .help = "the same on several nodes"),
    ROW("nccl.ring_intra_1node", RATE, nccl.ring_intra_1node, RATE_OR_NONE,
        .help = "rate of one such channel on one node"),
    ROW("nccl.ring_intra", RATE, nccl.ring_intra, RATE_OR_NONE, .help = "inside a node, of a ring over several nodes"),
    ROW("nccl.ring_inter", RATE, nccl.ring_inter, RATE_OR_NONE, .help = "between nodes"),
    ROW("nccl.nvls_heads", COUNT, nccl.nvls_heads, .initial = "0", .min = 0, .max = 64,
        .help = "NVLS channels found, before doubling"),
    ROW("nccl.nvls_intra", RATE, nccl.nvls_intra, RATE_OR_NONE, .help = "rate of one NVLS channel inside a node"),
    ROW("nccl.nvls_inter", RATE, nccl.nvls_inter, RATE_OR_NONE, .help = "between nodes"),

    ROW("nccl_flow.call", TIME, nccl_flow.call_ps, TIME_RANGE, .initial = "0ps",
        .help = "host's time for one call; counts where it is longer than all that follows"),
    ROW("nccl_flow.start", TIME, nccl_flow.start_ps, TIME_RANGE, .initial = "6.97us",
        .help = "NCCL kernel: launch to the first operation and last operation to end"),
    ROW("nccl_flow.hop_ll", TIME, nccl_flow.hop_ll_ps, TIME_RANGE, .initial = "0.66us",
        .help = "LL: from stored to seen by a peer"),
    ROW("nccl_flow.hop", TIME, nccl_flow.hop_ps, TIME_RANGE, .initial = "1.735us",
        .help = "Simple: from stored to seen by a peer, fence and flag"),
    ROW("nccl_flow.step", TIME, nccl_flow.step_ps, TIME_RANGE, .initial = "2.153us",
        .help = "Simple: a CTA's fixed time for a slice"),
    ROW("nccl_flow.copy_rate", RATE, nccl_flow.copy_rate, RATE_NEEDED, .initial = "47.2GB/s",
        .help = "what one of its CTAs copies"),
    ROW("nccl_flow.link_rate", RATE, nccl_flow.link_rate, RATE_NEEDED, .initial = "375.6GB/s",
        .help = "what a GPU's NVLinks carry under NCCL"),
    ROW("nccl_flow.nvls_rate", RATE, nccl_flow.nvls_rate, RATE_NEEDED, .initial = "325.6GB/s",
        .help = "the same while the switch reduces and multicasts"),
    ROW("nccl_flow.nvls_step", TIME, nccl_flow.nvls_step_ps, TIME_RANGE, .initial = "3.945us",
        .help = "fixed time of a chunk there"),
    ROW("nccl_flow.net_ll", TIME, nccl_flow.net_ll_ps, TIME_RANGE, .initial = "5.394us",
        .help = "hop between nodes under LL and LL128: proxy, NIC and wire"),
    ROW("nccl_flow.net", TIME, nccl_flow.net_ps, TIME_RANGE, .initial = "15.149us",
        .help = "the same under Simple, flush included"),
    ROW("nccl_flow.net_rate", RATE, nccl_flow.net_rate, RATE_NEEDED, .initial = "21GB/s",
        .help = "what one channel's connection to another node carries"),
    {0},
};

/* gemm.steps is a map duration -> step, which no row can hold; base is another file. */
static const char *const other_keys[] = {"gemm.steps", "base", NULL};
static const struct option step_options[] = {
    {.name = "gemm.steps",
     .type = OPTION_TIME,
     .offset = offsetof(struct step_cost, duration_ps),
     .min = 0,
     .max = TIME_MAX_PS},
    {.name = "gemm.steps",
     .type = OPTION_TIME,
     .offset = offsetof(struct step_cost, step_ps),
     .min = 1,
     .max = TIME_MAX_PS},
    {0},
};

static enum status refuse(const struct yaml_node *node, const char *what)
{
    place_error(&node->place, "%s", what);
    return ST_INPUT;
}

static enum status read_steps(const struct yaml_node *root, struct machine *m)
{
    const struct yaml_node *gemm = yaml_get(root, "gemm"), *steps = yaml_get(gemm, "steps");

    m->gemm.step_count = 0;
    if (!steps || steps->kind != YAML_MAP || steps->count < 1 || steps->count > MACHINE_TABLE_MAX)
        return refuse(steps ? steps : root, "gemm.steps is missing or no table; expected a map of "
                                            "1 to 8 rows, for example {0.1ms: 0.74us}");
    for (const struct yaml_node *n = steps->first; n; n = n->next) {
        struct step_cost *cost = &m->gemm.steps[m->gemm.step_count];
        struct yaml_node key = {.kind = YAML_SCALAR, .place = n->key_place, .text = n->key};

        TRY(keys_read_value("", &step_options[0], &key, NULL, cost));
        TRY(keys_read_value("", &step_options[1], n, NULL, cost));
        if (m->gemm.step_count > 0 && cost[-1].duration_ps >= cost->duration_ps)
            return refuse(&key, "gemm.steps does not rise; expected rows in order of duration");
        m->gemm.step_count++;
    }
    return ST_OK;
}

/* What keys that are fine one by one must be together. */
static const char *what_lacks(const struct machine *m)
{
    if (m->gpus_per_node > 1 && (m->nvlink.rate == 0 || m->nvlink.engine_rate == 0))
        return "several GPUs a node need nvlink.rate and nvlink.engine_rate";
    if (m->gpus_per_node > 1 && (m->nccl.ring_channels_1node == 0 || m->nccl.ring_intra_1node == 0))
        return "several GPUs a node need nccl.ring_channels_1node and nccl.ring_intra_1node";
    if (m->nodes_max > 1 && (m->nic.per_gpu == 0 || m->nic.rate == 0 || m->nic.latency_ps == 0))
        return "several nodes need nic.per_gpu, nic.rate and nic.latency";
    if (m->nodes_max > 1 && (m->nccl.ring_channels == 0 || m->nccl.ring_intra == 0 || m->nccl.ring_inter == 0))
        return "several nodes need nccl.ring_channels, nccl.ring_intra and nccl.ring_inter";
    if (m->nccl.nvls &&
        (m->nccl.nvls_heads == 0 || m->nccl.nvls_intra == 0 || (m->nodes_max > 1 && m->nccl.nvls_inter == 0)))
        return "nccl.nvls needs nccl.nvls_heads, nccl.nvls_intra and, on several nodes, "
               "nccl.nvls_inter";
    return NULL;
}

/* "a/b/hgx.yaml" -> "hgx" */
static void name_from_path(const char *path, char name[OPTION_TEXT_BYTES])
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t size = strlen(base);

    if (size > 5 && strcmp(base + size - 5, ".yaml") == 0)
        size -= 5;
    snprintf(name, OPTION_TEXT_BYTES, "%.*s", (int)size, base);
}

static enum status load_file(const char *path, bool is_base, struct machine *out);

/* The machine that the file differs from; one that differs itself is none, so there are no circles. */
static enum status read_base(const struct yaml_node *node, const char *path, bool is_base, struct machine *m)
{
    char folder[1024], base[1024], why[800];

    if (is_base)
        return refuse(node, "a base may not have a base; expected a whole machine");
    if (node->kind != YAML_SCALAR)
        return refuse(node, "base is no name; expected a machine's, or a path that ends in .yaml");
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 0), path);
    if (machine_find(node->text, folder[0] ? folder : NULL, base, sizeof base, why, sizeof why) < 0)
        return refuse(node, why);
    return load_file(base, true, m);
}

static enum status read_machine(const struct yaml_node *root, const char *path, bool is_base, struct machine *out)
{
    struct keys keys = {.section = "", .table = machine_options, .more = other_keys};
    const struct yaml_node *base = yaml_get(root, "base");
    struct machine m = {0};

    TRY(keys_check(&keys, root));
    if (base)
        TRY(read_base(base, path, is_base, &m));
    keys.partial = base != NULL;
    TRY(keys_read(&keys, root, root->place, &m));
    if (!base || yaml_get(yaml_get(root, "gemm"), "steps"))
        TRY(read_steps(root, &m));
    if (what_lacks(&m))
        return refuse(root, what_lacks(&m));
    name_from_path(path, m.name);
    m.derived = base != NULL;
    *out = m;
    return ST_OK;
}

static enum status parse(const char *path, const char *text, size_t text_bytes, bool is_base, struct machine *out)
{
    struct yaml y;
    enum status st;

    TRY(yaml_parse(path, text, text_bytes, &y));
    st = read_machine(y.root, path, is_base, out);
    yaml_fini(&y);
    return st;
}

enum status machine_parse(const char *path, const char *text, size_t text_bytes, struct machine *out)
{
    return parse(path, text, text_bytes, false, out);
}

static enum status load_file(const char *path, bool is_base, struct machine *out)
{
    char *text;
    size_t text_bytes;
    enum status st;

    TRY(yaml_read_file(path, &text, &text_bytes));
    st = parse(path, text, text_bytes, is_base, out);
    free(text);
    return st;
}

enum status machine_load_file(const char *path, struct machine *out)
{
    return load_file(path, false, out);
}

enum status machine_holds(const struct machine *m, struct world w, char *why, size_t why_bytes)
{
    if (w.nodes >= 1 && w.gpus_per_node >= 1 && w.nodes <= m->nodes_max && w.gpus_per_node <= m->gpus_per_node)
        return ST_OK;
    snprintf(why, why_bytes, "%u nodes x %u GPUs do not fit machine %s; expected at most %llu nodes x %llu GPUs",
             w.nodes, w.gpus_per_node, m->name, (unsigned long long)m->nodes_max, (unsigned long long)m->gpus_per_node);
    return ST_INPUT;
}

/* The point at x on the line from a to b. */
static uint64_t interpolate(const struct step_cost *a, const struct step_cost *b, uint64_t x)
{
    __int128 rise = (__int128)b->step_ps - (__int128)a->step_ps;
    __int128 width = (__int128)b->duration_ps - (__int128)a->duration_ps;

    return (uint64_t)((__int128)a->step_ps + rise * (__int128)(x - a->duration_ps) / width);
}

static uint64_t between_64_and_128(int64_t low_ps, int64_t high_ps, uint64_t head_dim)
{
    if (head_dim <= 64)
        return (uint64_t)low_ps;
    return (uint64_t)(low_ps + (high_ps - low_ps) * (int64_t)(min_u64(head_dim, 128) - 64) / 64);
}

uint64_t machine_attention_step_ps(const struct machine *m, uint64_t head_dim)
{
    return between_64_and_128((int64_t)m->attention.step_64_ps, (int64_t)m->attention.step_128_ps, head_dim);
}

uint64_t machine_program_attention_step_ps(const struct machine *m, uint64_t head_dim)
{
    double low = (double)m->attention.step_64_ps * m->program.attention_64;
    double high = (double)m->attention.step_128_ps * m->program.attention;

    return between_64_and_128((int64_t)(low + 0.5), (int64_t)(high + 0.5), head_dim);
}

uint64_t machine_gemm_step_ps(const struct machine *m, uint64_t duration_ps)
{
    const struct step_cost *steps = m->gemm.steps;

    if (duration_ps <= steps[0].duration_ps)
        return steps[0].step_ps;
    for (uint32_t i = 1; i < m->gemm.step_count; i++)
        if (duration_ps <= steps[i].duration_ps)
            return interpolate(&steps[i - 1], &steps[i], duration_ps);
    return steps[m->gemm.step_count - 1].step_ps;
}
