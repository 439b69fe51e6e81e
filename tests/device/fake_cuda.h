/* As much of the CUDA runtime as the host's half of the backend calls, without a GPU: memory is
 * malloc's, copies are done at once, kernels are what a test says.  A kernel runs until the abort
 * word of its program is set, or is over at once; what would wait for one that never ends is noted
 * instead.  Or, with `computes`, it does what its program says (fake_kernel.h), in a thread, and what the proxies'
 * streams copy comes later than the call (fake_copies.h). */
#ifndef TESTS_DEVICE_FAKE_CUDA_H
#define TESTS_DEVICE_FAKE_CUDA_H

#include <stdbool.h>

#define FAKE_DEVICES_MAX 4
#define FAKE_NONE (-1)

struct fake_cuda {
    int devices;
    bool links_add;                 /* carry atomic additions */
    bool endless;                   /* kernels wait for somebody */
    bool ordered;                   /* what cards write into their memory they see in order */
    bool computes;                  /* kernels and inputs are real; this and `endless` exclude each other */
    int refuses, traps;             /* the device that does not launch; whose kernel fails; or FAKE_NONE */
    char launches[64];              /* of all devices: 't' by the interpreter that leaves records, 'u' by the
                                       other one */
    float (*elapsed_ms)(void);      /* between two events; NULL: always one */
    int waits_for_good;             /* calls that would not have come back */
    bool stopped[FAKE_DEVICES_MAX]; /* an endless kernel's abort word has been seen */
};

extern struct fake_cuda fake_cuda;

#endif
