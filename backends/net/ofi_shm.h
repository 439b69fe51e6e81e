/* What libfabric's shared memory leaves behind. */
#ifndef BACKENDS_NET_OFI_SHM_H
#define BACKENDS_NET_OFI_SHM_H

struct fid_ep;

/* A process that was killed leaves its regions in /dev/shm, named after its number.  So a region loses its name as soon
 * as all peers have mapped it: what a killed process has then goes with it.  Nothing for other providers. */
void ofi_shm_unlink(struct fid_ep *ep);

/* And what has been killed before that: the next process of that number is refused regions of the same name ("busy":
 * the owner is alive, itself).  Removes such, before this process's first. */
void ofi_shm_forget_dead(void);

#endif
