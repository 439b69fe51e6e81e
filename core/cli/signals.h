/* What the process does about signals. */
#ifndef CORE_CLI_SIGNALS_H
#define CORE_CLI_SIGNALS_H

#include <signal.h>

/* From now on SIGINT and SIGTERM set signals_interrupted, which whoever runs things looks at, and writing to a closed
 * pipe is an error like others: "mkernel run | head" still keeps its results. */
void signals_catch(void);

extern volatile sig_atomic_t signals_interrupted;

/* Set while nothing has run that would be lost: SIGINT and SIGTERM then end the process at once (exit code 130), and
 * SIGALRM says that planning took too long (4). */
extern volatile sig_atomic_t signals_planning;

#endif
