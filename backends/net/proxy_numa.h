/* Which processors are near a device. */
#ifndef BACKENDS_NET_PROXY_NUMA_H
#define BACKENDS_NET_PROXY_NUMA_H

/* Keeps the calling thread to those processors of a NUMA node that it may use already; leaves it as it is where
 * there are none, and for -1. */
void proxy_numa_keep_to(int node);

#endif
