/* The HTML report: one file that needs no network.  The page (core/cli/page/) draws everything from one JSON
 * object that stands in it; docs/report.md says what it shows.
 *
 * Texts from result files may hold anything: the JSON is written without "<", and the page only ever sets
 * text, never markup. */
#ifndef CORE_CLI_PAGE_H
#define CORE_CLI_PAGE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "core/results/records.h"

/* ---- page_data.c ---- */

/* {"runs": [...], "points": [...]} of all files, without what the page does not show. */
json_t *page_data(const struct records *files, size_t count);

/* ---- page_published.c ---- */

/* The rows of a table of published results (results/reference/README.md) about kernels that the points have, as
 * objects by column name.  A missing file is an empty list; a damaged one is ST_INPUT, logged. */
enum status page_published(const char *path, const struct records *files, size_t count, json_t **out);

/* ---- page_timeline.c ---- */

#define PAGE_SLICES_MAX 4000
#define PAGE_WORKERS_MAX 4 /* of a crew */

/* One rank of a trace (docs/trace.md): {"file", "rank", "title", "threads": [...], "slices": [[thread, begin us,
 * length us, 0 task or 1 wait, name], ...], "cut": how many slices are left out}.  ST_INPUT: logged. */
enum status page_timeline(const char *path, uint32_t rank, json_t **out);

/* ---- page_write.c ---- */

/* Writes the report, whole or not at all, never over another file; path_out (RESULT_PATH_BYTES). */
enum status page_write(const json_t *data, const char *path, char *path_out);

#endif
