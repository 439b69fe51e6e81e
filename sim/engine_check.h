/* Which way of starting flows works here: found out by running a case with known times. */
#ifndef SIM_ENGINE_CHECK_H
#define SIM_ENGINE_CHECK_H

#include "sim/engine.h"

/* Turns ENGINE_AUTO into what works, with a warning when that is not kernel actions.
 * ST_ENVIRONMENT (logged) when what is wanted fails the check. */
enum status engine_check_api(enum engine_api wanted, enum engine_api *chosen_out);

/* engine_create() for an api that is known to work. */
enum status engine_create_unchecked(const struct engine_config *config, struct engine **out);

#endif
