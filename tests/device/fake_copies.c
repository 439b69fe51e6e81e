#include "fake_copies.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define ORDERS_MAX 1024
#define LATE_US 30

struct order {
    void *to;
    const void *from; /* NULL: `value` into a word */
    uint64_t value;
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct order orders[ORDERS_MAX]; /* a ring */
static uint64_t asked, done;
static bool is_running;

static void carry_out(const struct order *o)
{
    if (o->from)
        memcpy(o->to, o->from, o->bytes);
    else
        __atomic_store_n((uint64_t *)o->to, o->value, __ATOMIC_RELEASE);
}

static void *engine(void *arg)
{
    for (;;) {
        struct order o;

        pthread_mutex_lock(&lock);
        if (done == asked) {
            is_running = false;
            pthread_mutex_unlock(&lock);
            return arg;
        }
        o = orders[done % ORDERS_MAX];
        pthread_mutex_unlock(&lock);
        usleep(LATE_US);
        carry_out(&o);
        pthread_mutex_lock(&lock);
        done++;
        pthread_mutex_unlock(&lock);
    }
}

/* An engine that has nothing to do has ended. */
static void order(struct order o)
{
    pthread_t thread;

    pthread_mutex_lock(&lock);
    assert(asked - done < ORDERS_MAX);
    orders[asked++ % ORDERS_MAX] = o;
    if (!is_running) {
        is_running = pthread_create(&thread, NULL, engine, NULL) == 0;
        assert(is_running);
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&lock);
}

void fake_copies_copy(void *to, const void *from, size_t bytes)
{
    order((struct order){.to = to, .from = from, .bytes = bytes});
}

void fake_copies_write(uint64_t *word, uint64_t value)
{
    order((struct order){.to = word, .value = value});
}

void fake_copies_drain(void)
{
    bool drained = false;

    while (!drained) {
        usleep(LATE_US);
        pthread_mutex_lock(&lock);
        drained = done == asked;
        pthread_mutex_unlock(&lock);
    }
}
