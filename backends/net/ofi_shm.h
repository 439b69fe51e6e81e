/* What libfabric's shared memory leaves behind. */
#ifndef BACKENDS_NET_OFI_SHM_H
#define BACKENDS_NET_OFI_SHM_H

/* A process that was killed leaves its regions in /dev/shm, named after its number.  The next one of that number is
 * refused regions of the same name ("busy": the owner is alive, itself).  Removes such, before this process's first. */
void ofi_shm_forget_dead(void);

#endif
