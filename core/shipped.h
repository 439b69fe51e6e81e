/* What comes with mkernel beside the binary: scenarios/ with the machines, results/ with what was measured. */
#ifndef CORE_SHIPPED_H
#define CORE_SHIPPED_H

/* The folder that holds these two.  An installed mkernel has it in its own prefix (PREFIX/share/mkernel for PREFIX/bin/mkernel),
 * wherever that has been moved; any other program in the source tree that it was built from.  An absolute path, the same
 * for as long as the process lives; whether anything is there is not asked. */
const char *shipped_folder(void);

#define SHIPPED_PATH_BYTES 4352 /* room for the path of anything in it */

#endif
