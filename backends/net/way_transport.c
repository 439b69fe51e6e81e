#include "backends/net/way_transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/transports.h"

static const struct transport *find(const struct way *w, char *name, size_t name_bytes)
{
    const char *at = WAY_TRANSPORTS;
    const struct transport *t;

    for (uint32_t i = 0; i < w->config.options->transport; i++)
        at = strchr(at, '|') + 1;
    snprintf(name, name_bytes, "%.*s", (int)strcspn(at, "|"), at);
    t = transport_find(name);
    return t == &loopback_transport && w->config.loopback ? w->config.loopback : t;
}

/* "key=value" */
static enum status read_option(struct way *w, char *pair, char why[WAY_WHY_BYTES])
{
    const struct transport *t = w->transport;
    const struct option *o;
    char *value = strchr(pair, '='), reason[256];

    if (value)
        *value++ = 0;
    o = option_find(t->options, pair);
    if (!o || !value) {
        const char *near = option_nearest(t->options, pair);

        snprintf(why, WAY_WHY_BYTES, "%s.transport_options: transport %s has no option \"%s\"%s%s%s", w->config.backend,
                 t->name, pair, near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        return ST_INPUT;
    }
    if (option_parse(o, w->transport_options, value, NULL, reason, sizeof reason) >= 0)
        return ST_OK;
    snprintf(why, WAY_WHY_BYTES, "%s.transport_options: %s %s: %s", w->config.backend, pair, value, reason);
    return ST_INPUT;
}

/* "reorder=true seed=7", over defaults. */
static enum status read_options(struct way *w, char why[WAY_WHY_BYTES])
{
    const struct transport *t = w->transport;
    const char *text = w->config.options->text;
    char pair[OPTION_TEXT_BYTES];
    int used;

    w->transport_options = calloc(1, t->options_size + 1);
    if (!w->transport_options) {
        snprintf(why, WAY_WHY_BYTES, "%s: no memory for the transport's options", w->config.backend);
        return ST_MEMORY;
    }
    option_defaults(t->options, w->transport_options);
    if (text[0] == 0 && w->config.options->transport == 0)
        text = w->config.loopback_text;
    for (; sscanf(text, " %63s%n", pair, &used) == 1; text += used)
        TRY(read_option(w, pair, why));
    return ST_OK;
}

enum status way_choose_transport(struct way *w, char why[WAY_WHY_BYTES])
{
    char name[32];

    w->transport = find(w, name, sizeof name);
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
    return read_options(w, why);
}
