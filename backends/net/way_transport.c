#include "backends/net/way_transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/transports.h"

/* NULL: this mkernel was built without it. */
static const struct transport *find(const struct way_options *o, const struct transport *loopback, char *name,
                                    size_t name_bytes)
{
    const char *at = WAY_TRANSPORTS;
    const struct transport *t;

    for (uint32_t i = 0; i < o->transport; i++)
        at = strchr(at, '|') + 1;
    snprintf(name, name_bytes, "%.*s", (int)strcspn(at, "|"), at);
    t = transport_find(name);
    return t == &loopback_transport && loopback ? loopback : t;
}

/* "key=value" */
static enum status read_option(const struct transport *t, char *pair, void *out, char *why, size_t why_bytes)
{
    const struct option *o;
    char *value = strchr(pair, '='), reason[160];

    if (value)
        *value++ = 0;
    o = option_find(t->options, pair);
    if (!o) {
        const char *near = option_nearest(t->options, pair);

        snprintf(why, why_bytes, "transport %s has no option \"%s\"%s%s%s", t->name, pair,
                 near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        return ST_INPUT;
    }
    if (!value) {
        snprintf(why, why_bytes, "%s lacks a value; expected %s=VALUE", pair, pair);
        return ST_INPUT;
    }
    if (option_parse(o, out, value, NULL, reason, sizeof reason) >= 0)
        return ST_OK;
    snprintf(why, why_bytes, "%s %s: %s", pair, value, reason);
    return ST_INPUT;
}

/* "reorder=true seed=7", over defaults. */
static enum status read_options(const struct transport *t, const char *text, void *out, char *why, size_t why_bytes)
{
    char pair[OPTION_TEXT_BYTES];
    int used;

    option_defaults(t->options, out);
    for (; sscanf(text, " %63s%n", pair, &used) == 1; text += used)
        TRY(read_option(t, pair, out, why, why_bytes));
    return ST_OK;
}

enum status way_check_options(const struct way_options *o, const struct transport *loopback, struct complaint *c)
{
    char name[32], why[sizeof c->text];
    const struct transport *t = find(o, loopback, name, sizeof name);
    void *scratch = t ? calloc(1, t->options_size + 1) : NULL;
    enum status st = scratch ? read_options(t, o->text, scratch, why, sizeof why) : ST_OK;

    free(scratch);
    return st < 0 ? complain(c, "transport_options", "%s", why) : ST_OK;
}

enum status way_choose_transport(struct way *w, char why[WAY_WHY_BYTES])
{
    const struct way_config *c = &w->config;
    const char *text = c->options->text;
    char name[32], reason[WAY_WHY_BYTES / 2];
    enum status st;

    w->transport = find(c->options, c->loopback, name, sizeof name);
    if (!w->transport) {
        snprintf(why, WAY_WHY_BYTES, "this mkernel was built without the transport %s: `mkernel list transports`",
                 name);
        return ST_ENVIRONMENT;
    }
    if (w->transport->in_process && way_is_across(w)) {
        snprintf(why, WAY_WHY_BYTES,
                 "the transport %s stays inside one process, and this run has one a node: --transport ofi", name);
        return ST_INPUT;
    }
    w->transport_options = calloc(1, w->transport->options_size + 1);
    if (!w->transport_options) {
        snprintf(why, WAY_WHY_BYTES, "%s: no memory for the transport's options", c->backend);
        return ST_MEMORY;
    }
    if (text[0] == 0 && c->options->transport == 0)
        text = c->loopback_text;
    st = read_options(w->transport, text, w->transport_options, reason, sizeof reason);
    if (st < 0)
        snprintf(why, WAY_WHY_BYTES, "%s.transport_options: %s", c->backend, reason);
    return st;
}
