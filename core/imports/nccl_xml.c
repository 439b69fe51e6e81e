#include "core/imports/nccl_xml.h"

#include <assert.h>
#include <errno.h>
#include <expat.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

#define DEPTH_MAX 32
#define ELEMENTS_MAX 200000
#define COUNT_MAX 1000000000 /* no number in such a file means more */
#define GPUS_MAX 1024

struct reader {
    const char *path;
    struct nccl_xml *out;
    XML_Parser parser;
    uint32_t depth, elements;
    bool failed;
    char host[64];           /* of the first cpu */
    bool other_host;         /* the cpu in hand is another host's */
    uint64_t device;         /* of the pci element in hand */
    struct nccl_graph graph; /* in hand */
    int64_t pattern;
};

/* The first fault is the one that is told. */
static void refuse(struct reader *r, const char *what, const char *value)
{
    if (r->failed)
        return;
    r->failed = true;
    log_error("%s:%lu:%lu: %s%s%.60s%s", r->path, XML_GetCurrentLineNumber(r->parser),
              XML_GetCurrentColumnNumber(r->parser) + 1, what, value ? " \"" : "", value ? value : "",
              value ? "\"" : "");
    XML_StopParser(r->parser, XML_FALSE);
}

/* ---- attributes ---- */

static const char *attribute(const XML_Char **a, const char *name)
{
    for (; a[0]; a += 2)
        if (strcmp(a[0], name) == 0)
            return a[1];
    return NULL;
}

/* Decimal or 0x..., at most COUNT_MAX; absent: 0. */
static uint64_t take_count(struct reader *r, const XML_Char **a, const char *name)
{
    const char *text = attribute(a, name);
    char *end;
    uint64_t value;

    if (!text)
        return 0;
    errno = 0;
    value = strtoull(text, &end, 0);
    if (*text < '0' || *text > '9' || *end || errno || value > COUNT_MAX) {
        refuse(r, "expected a number from 0 to 1000000000, found", text);
        return 0;
    }
    return value;
}

static double take_rate(struct reader *r, const XML_Char **a, const char *name)
{
    const char *text = attribute(a, name);
    char *end;
    double value;

    if (!text)
        return 0;
    value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < 0 || value > 1e6) {
        refuse(r, "expected a rate in GB/s, found", text);
        return 0;
    }
    return value;
}

static void take_text(char *out, size_t out_bytes, const char *text)
{
    snprintf(out, out_bytes, "%s", text ? text : "");
}

/* ---- elements of a topology ---- */

static void begin_cpu(struct reader *r, const XML_Char **a)
{
    const char *host = attribute(a, "host_hash");

    if (r->out->hosts == 0) {
        take_text(r->host, sizeof r->host, host);
        take_text(r->out->cpu, sizeof r->out->cpu, attribute(a, "vendor"));
        r->out->hosts = 1;
    }
    r->other_host = host && strncmp(host, r->host, sizeof r->host - 1) != 0;
    if (r->other_host)
        r->out->hosts = 2;
}

static void begin_gpu(struct reader *r, const XML_Char **a)
{
    struct nccl_xml *x = r->out;
    uint64_t sm = take_count(r, a, "sm");

    if (r->other_host || !attribute(a, "sm")) /* a graph's GPUs have none */
        return;
    if (x->gpus > 0 && sm != x->sm)
        refuse(r, "expected GPUs of one kind, found another sm:", attribute(a, "sm"));
    if (++x->gpus > GPUS_MAX)
        refuse(r, "expected the GPUs of one node, found more than 1024", NULL);
    x->sm = sm;
    if (x->gpus == 1)
        x->device = r->device;
}

static void begin_nvlink(struct reader *r, const XML_Char **a)
{
    if (!r->other_host && r->out->gpus == 1)
        r->out->nvlinks += take_count(r, a, "count");
}

static void begin_net(struct reader *r, const XML_Char **a)
{
    struct nccl_xml *x = r->out;

    if (!attribute(a, "speed")) { /* of a graph's channel */
        r->graph.has_net = true;
        return;
    }
    if (r->other_host)
        return;
    if (x->net_count == NCCL_XML_NETS_MAX) {
        refuse(r, "expected at most 64 NICs in a node", NULL);
        return;
    }
    struct nccl_net *net = &x->nets[x->net_count++];
    take_text(net->name, sizeof net->name, attribute(a, "name"));
    net->mbps = take_count(r, a, "speed");
    net->gpu_direct = take_count(r, a, "gdr") != 0;
}

/* ---- elements of a graph file ---- */

static void begin_graph(struct reader *r, const XML_Char **a)
{
    r->pattern = (int64_t)take_count(r, a, "pattern");
    r->graph = (struct nccl_graph){
        .channels = take_count(r, a, "nchannels"),
        .intra = take_rate(r, a, "speedintra"),
        .inter = take_rate(r, a, "speedinter"),
    };
    if (r->graph.channels > 64)
        refuse(r, "expected at most 64 channels, found", attribute(a, "nchannels"));
}

static void end_graph(struct reader *r)
{
    if (r->pattern == NCCL_RING)
        r->out->ring = r->graph;
    if (r->pattern == NCCL_NVLS)
        r->out->nvls = r->graph;
}

/* ---- the document ---- */

static void begin_root(struct reader *r, const XML_Char *name)
{
    if (strcmp(name, "system") == 0)
        r->out->has_topology = true;
    else if (strcmp(name, "graphs") == 0)
        r->out->has_graphs = true;
    else
        refuse(r, "expected <system> (a topology) or <graphs>, found", name);
}

static void XMLCALL begin(void *arg, const XML_Char *name, const XML_Char **a)
{
    struct reader *r = arg;

    if (r->depth++ == 0)
        begin_root(r, name);
    if (r->depth > DEPTH_MAX || ++r->elements > ELEMENTS_MAX)
        refuse(r, r->depth > DEPTH_MAX ? "nested deeper than any dump of NCCL" : "more elements than any dump of NCCL",
               NULL);
    else if (strcmp(name, "cpu") == 0)
        begin_cpu(r, a);
    else if (strcmp(name, "pci") == 0)
        r->device = take_count(r, a, "device");
    else if (strcmp(name, "gpu") == 0)
        begin_gpu(r, a);
    else if (strcmp(name, "nvlink") == 0)
        begin_nvlink(r, a);
    else if (strcmp(name, "net") == 0)
        begin_net(r, a);
    else if (strcmp(name, "graph") == 0)
        begin_graph(r, a);
}

static void XMLCALL end(void *arg, const XML_Char *name)
{
    struct reader *r = arg;

    r->depth--;
    if (strcmp(name, "graph") == 0)
        end_graph(r);
}

static void XMLCALL begin_doctype(void *arg, const XML_Char *name, const XML_Char *system_id, const XML_Char *public_id,
                                  int has_internal_subset)
{
    (void)system_id;
    (void)public_id;
    (void)has_internal_subset;
    refuse(arg, "expected no document type declaration (dumps of NCCL have none), found", name);
}

enum status nccl_xml_parse(const char *path, const char *text, size_t text_bytes, struct nccl_xml *x)
{
    struct nccl_xml read = *x;
    struct reader r = {.path = path, .out = &read, .parser = XML_ParserCreate(NULL)};

    assert(r.parser && text_bytes <= NCCL_XML_BYTES_MAX);
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, begin, end);
    XML_SetStartDoctypeDeclHandler(r.parser, begin_doctype);
    if (XML_Parse(r.parser, text, (int)text_bytes, XML_TRUE) != XML_STATUS_OK && !r.failed)
        refuse(&r, XML_ErrorString(XML_GetErrorCode(r.parser)), NULL);
    XML_ParserFree(r.parser);
    if (r.failed)
        return ST_INPUT;
    *x = read;
    return ST_OK;
}
