/* The cuda backend's baselines over a CUDA, an NCCL and a cuBLAS that are none: fake_cuda.h, fake_nccl.c,
 * fake_cublas.c, which compute for real, one call after the other. */
#include <check.h>
#include <string.h>

#include "cuda_baseline.h"
#include "fake_cuda.h"

#include "../suite.h"

/* GPUs for all ranks to share, whichever of the cuts is fastest, which NCCL will not have; or one for every rank. */
enum { CUTS = 21, TRIALS = 5 };

static int calls, fastest;

static float elapsed_ms(void)
{
    return calls++ / TRIALS == fastest ? 0.5f : 1;
}

static void choose(int i)
{
    fake_cuda.devices = i == CUTS ? 2 : 1;
    fake_cuda.elapsed_ms = i == CUTS ? NULL : elapsed_ms;
    fastest = i;
}

static void give_devices(int i)
{
    choose(i);
    if (i > CUTS)
        fake_cuda.devices = 4;
    fake_cuda.computes = i == CUTS + 2; /* the interpreter */
}

int main(void)
{
    Suite *s = suite_create("device_baseline");

    suite_add_tcase(s, cuda_baseline_tests(CUTS + 2, give_devices));
    return suite_run(s);
}
