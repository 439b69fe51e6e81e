/* Arithmetic on names, as scenario keys hold it: "m/16", "2*(k+64)".
 *
 * + - * / and parentheses over whole numbers in 64 bits.  A quotient that is not whole, a
 * difference below zero and a result that does not fit are errors, never rounded. */
#ifndef CORE_PARSE_EXPRESSION_H
#define CORE_PARSE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/parse/option.h"
#include "core/status.h"

/* On ST_INPUT `why` says what is wrong, without a full stop.  `scope` may be NULL. */
enum status expression_value(const char *text, const struct option_scope *scope, uint64_t *out, char *why,
                             size_t why_bytes);

/* Whether the expression mentions `name`. */
bool expression_uses(const char *text, const char *name);

#endif
