#include "backends/ops/blas.h"

#include <assert.h>
#include <cblas.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

/* Locks taken in here order no program's data: without this, ThreadSanitizer would believe that
 * they do and miss races of programs. */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreSyncBegin(const char *file, int line); /* of the sanitizer's runtime */
void AnnotateIgnoreSyncEnd(const char *file, int line);
#define UNORDERED_BEGIN() AnnotateIgnoreSyncBegin(__FILE__, __LINE__)
#define UNORDERED_END() AnnotateIgnoreSyncEnd(__FILE__, __LINE__)
#else
#define UNORDERED_BEGIN() ((void)0)
#define UNORDERED_END() ((void)0)
#endif

/* OpenBLAS keeps one large buffer per concurrent caller, for a fixed number of callers, and more
 * callers than processors gain nothing: so they take turns.  A turn never waits for anything but
 * arithmetic. */
static sem_t turns;

static void blas_open(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    openblas_set_num_threads(1); /* its threads would only compete with our workers */
    sem_init(&turns, 0, processors > 0 ? (unsigned)processors : 1);
}

void blas_add_product(uint64_t m, uint64_t n, uint64_t k, const float *a, const float *b, float *sum)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, blas_open);
    if (m == 0 || n == 0 || k == 0)
        return;
    assert(m <= INT_MAX && n <= INT_MAX && k <= INT_MAX);
    UNORDERED_BEGIN();
    while (sem_wait(&turns) != 0)
        assert(errno == EINTR);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)k, 1.0f, a, (int)k, b, (int)k, 1.0f, sum,
                (int)n);
    sem_post(&turns);
    UNORDERED_END();
}
