/* What bench_links.c and bench_links_nccl.c share. */
#ifndef TESTS_DEVICE_BENCH_LINKS_H
#define TESTS_DEVICE_BENCH_LINKS_H

#include <stdio.h>

#define LINKS_SAMPLES 15

/* NCCL's collectives over so many GPUs, a row a size, in the form of results/reference/nccl-published.csv. */
void bench_links_nccl(FILE *out, unsigned gpus);

#endif
