#include "core/run/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

#define SEND_SECONDS 5 /* that a child which does not read may hold its parent up */

static void close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

enum status relay_open(struct relay *r, struct nodes *n)
{
    struct timeval limit = {.tv_sec = SEND_SECONDS};
    int ends[2];

    *r = (struct relay){.nodes = n, .run = n->runs, .parent = -1, .child = -1};
    r->answers = calloc(n->count, sizeof *r->answers);
    if (!r->answers || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        log_error("no way to a child process: %s", strerror(errno));
        return ST_ENVIRONMENT;
    }
    r->parent = ends[0];
    r->child = ends[1];
    setsockopt(r->parent, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return ST_OK;
}

static void forget_answers(struct relay *r)
{
    for (uint32_t i = 0; r->answers && i < r->nodes->count; i++) {
        message_free(r->answers[i]);
        r->answers[i] = NULL;
    }
}

void relay_close(struct relay *r)
{
    close_end(&r->parent);
    close_end(&r->child);
    forget_answers(r);
    free(r->answers);
    free(r->mine);
    r->nodes->runs = r->run + 1;
}

struct node_link relay_link(struct relay *r)
{
    close_end(&r->parent);
    return (struct node_link){.node = r->nodes->node,
                              .count = r->nodes->count,
                              .socket = r->child,
                              .hosts = (const char(*)[NODE_HOST_BYTES])r->nodes->hosts};
}

void relay_forked(struct relay *r)
{
    close_end(&r->child);
}

/* ---- to the child ---- */

/* A child that is gone is noticed by its pipe. */
static void send_all(struct relay *r, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    while (bytes > 0) {
        ssize_t n = send(r->parent, at, bytes, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        at += n;
        bytes -= (size_t)n;
    }
}

static void pass_failures(struct relay *r)
{
    for (uint32_t from = 0; from < r->nodes->count; from++) {
        struct message *m = nodes_take(r->nodes, from, MESSAGE_CHILD_FAILED, r->run);
        struct relay_message head = {.kind = RELAY_FAILED, .node = from, .bytes = m ? m->bytes : 0};

        if (!m)
            continue;
        send_all(r, &head, sizeof head);
        send_all(r, m->data, m->bytes);
        message_free(m);
        if (r->failed_ns == 0)
            r->failed_ns = clock_now_ns();
    }
}

/* ---- from the child ---- */

static void receive(struct relay *r, void *into, size_t want, size_t at)
{
    ssize_t n = recv(r->parent, (uint8_t *)into + at, want - at, MSG_DONTWAIT);

    r->received += n > 0 ? (size_t)n : 0;
}

/* True once a whole request is there. */
static bool take_request(struct relay *r)
{
    const size_t head = sizeof r->request;

    if (r->received < head)
        receive(r, &r->request, head, r->received);
    if (r->received < head)
        return false;
    if (!r->mine)
        r->mine = malloc(r->request.bytes + 1);
    if (r->mine && r->received < head + r->request.bytes)
        receive(r, r->mine, r->request.bytes, r->received - head);
    return r->mine && r->received == head + r->request.bytes;
}

static bool take_answers(struct relay *r)
{
    bool all = true;

    for (uint32_t from = 0; from < r->nodes->count; from++) {
        if (from == r->nodes->node || r->answers[from])
            continue;
        r->answers[from] = nodes_take(r->nodes, from, MESSAGE_CHILD_GATHER, r->run);
        all &= r->answers[from] != NULL && r->answers[from]->bytes == r->request.bytes;
    }
    return all;
}

static void answer(struct relay *r)
{
    struct relay_message head = {
        .kind = RELAY_GATHER, .node = r->nodes->node, .bytes = r->request.bytes * r->nodes->count};

    send_all(r, &head, sizeof head);
    for (uint32_t i = 0; i < r->nodes->count; i++)
        send_all(r, i == r->nodes->node ? r->mine : r->answers[i]->data, r->request.bytes);
    forget_answers(r);
    free(r->mine);
    r->mine = NULL;
    r->received = 0;
    r->asked = false;
}

void relay_step(struct relay *r)
{
    nodes_pump(r->nodes);
    pass_failures(r);
    if (!r->asked && take_request(r))
        r->asked = nodes_tell(r->nodes, MESSAGE_CHILD_GATHER, r->run, r->mine, r->request.bytes) >= 0;
    if (r->asked && take_answers(r))
        answer(r);
}

void relay_fail(struct relay *r, const char *text)
{
    size_t bytes = strcspn(text, "\n");

    nodes_tell(r->nodes, MESSAGE_CHILD_FAILED, r->run, text, bytes < RELAY_TEXT_BYTES ? bytes : RELAY_TEXT_BYTES - 1);
}
