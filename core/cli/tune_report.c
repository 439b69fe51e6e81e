#include "core/cli/tune_report.h"

#include <inttypes.h>
#include <string.h>

#include "core/cli/report.h"
#include "core/results/record.h"

#define TIE 1.005 /* nearer than this nobody is faster */

static const char *form_name(const struct point *p)
{
    return record_program_name(p->program);
}

void tune_params_text(const struct point *p, char out[TUNE_TEXT_BYTES])
{
    uint64_t shown = point_is_baseline(p) ? 0 : report_params_differing(p);
    size_t used = (size_t)snprintf(out, TUNE_TEXT_BYTES, "%s", form_name(p));
    char value[OPTION_TEXT_BYTES];

    for (size_t i = 0; shown >> i && used < TUNE_TEXT_BYTES; i++) {
        const struct option *o = &p->kernel->options[i];

        if (!(shown >> i & 1))
            continue;
        option_print(o, p->params, value, sizeof value);
        used += (size_t)snprintf(out + used, TUNE_TEXT_BYTES - used, " %s=%s", o->name, value);
    }
}

static double us(const struct tune *t, uint64_t unit)
{
    return (double)tune_time_ps(&t->units[unit]) / 1e6;
}

static void print_problem(const struct tune_problem *p, FILE *f)
{
    const struct point *m = p->space.model;
    char text[PROBLEM_TEXT_BYTES];

    fprintf(f, "%s, %s, %" PRIu32 " x %" PRIu32 ", %s", m->kernel->name,
            problem_text(m->kernel->family, &m->problem, text), m->world.nodes, m->world.gpus_per_node,
            record_mode_name(m->timing.mode));
}

/* ---- the landscape ---- */

static bool is_program_of(const struct point *a, const struct tune_problem *p)
{
    return !point_is_baseline(a) && point_same_problem(a, p->space.model);
}

/* Time of the fastest program with that value; 0: none had it. */
static uint64_t fastest_with(const struct tune *t, const struct tune_problem *p, uint32_t axis, uint8_t value)
{
    uint64_t fastest = 0;

    for (uint64_t i = 0; i < t->unit_count; i++) {
        uint64_t time_ps = tune_time_ps(&t->units[i]);

        if (time_ps == 0 || !is_program_of(t->units[i].point, p) ||
            tune_space_place(&p->space, t->units[i].point).at[axis] != value)
            continue;
        if (fastest == 0 || time_ps < fastest)
            fastest = time_ps;
    }
    return fastest;
}

static uint64_t slowest(const struct tune *t, const struct tune_problem *p)
{
    uint64_t found = p->program;

    for (uint64_t i = 0; i < t->unit_count; i++)
        if (is_program_of(t->units[i].point, p) && tune_time_ps(&t->units[i]) > tune_time_ps(&t->units[found]))
            found = i;
    return found;
}

static void print_axis(const struct tune *t, const struct tune_problem *p, uint32_t axis, FILE *f)
{
    const struct tune_axis *a = &p->space.axes[axis];
    double best = (double)tune_time_ps(&t->units[p->program]);

    fprintf(f, "  %-12s", a->option ? a->option->name : "program");
    for (uint32_t v = 0; v < a->count; v++) {
        uint64_t time_ps = fastest_with(t, p, axis, (uint8_t)v);

        if (time_ps > 0)
            fprintf(f, "  %s %.3f", a->values[v], (double)time_ps / best);
        else
            fprintf(f, "  %s -", a->values[v]);
    }
    fprintf(f, "\n");
}

void tune_report_landscape(const struct tune *t, const struct tune_problem *p, FILE *f)
{
    static const char *const ends[] = {
        [TUNE_SETTLED] = "no single change makes the best one of either form faster",
        [TUNE_POINTS] = "all points are used up",
        [TUNE_TIME] = "the time is used up",
    };
    uint64_t worst = slowest(t, p);
    char text[TUNE_TEXT_BYTES];

    fprintf(f, "# ");
    print_problem(p, f);
    fprintf(f, ": %" PRIu64 " programs timed", p->timed);
    if (p->refused > 0)
        fprintf(f, ", %" PRIu64 " refused by the kernel", p->refused);
    fprintf(f, "; %s\n# the fastest program found with each value, over the fastest of all\n", ends[p->end]);
    for (uint32_t axis = 0; axis < p->space.axis_count; axis++)
        print_axis(t, p, axis, f);
    tune_params_text(t->units[worst].point, text);
    fprintf(f, "  slowest: %.2f times as long, %s\n", us(t, worst) / us(t, p->program), text);
}

/* ---- the answer ---- */

static void print_against(const struct tune *t, uint64_t best, uint64_t other, const char *name, FILE *f)
{
    if (other != TUNE_NONE && other != best)
        fprintf(f, ", %.2fx over %s (%.2f us)", us(t, other) / us(t, best), name, us(t, other));
}

/* The options that make the scenario's variant the best program. */
static void print_sets(const struct tune *t, const struct tune_problem *p, FILE *f)
{
    const struct point *best = t->units[p->program].point;

    fprintf(f, "  %s--set variants.%s.program=%s",
            p->best == p->program ? "" : "the best program: ", p->space.model->variant, form_name(best));
    for (uint32_t i = 0; i < p->space.axis_count; i++) {
        const struct tune_axis *a = &p->space.axes[i];
        char value[OPTION_TEXT_BYTES];

        if (!a->option)
            continue;
        option_print(a->option, best->params, value, sizeof value);
        fprintf(f, " --set variants.%s.%s=%s", p->space.model->variant, a->option->name, value);
    }
    fprintf(f, "\n");
}

void tune_report_answer(const struct tune *t, const struct tune_problem *p, FILE *f)
{
    const struct machine *m = p->space.model->machine;
    const char *library = p->space.model->kernel->family->library;
    char text[TUNE_TEXT_BYTES];

    print_problem(p, f);
    tune_params_text(t->units[p->best].point, text);
    fprintf(f, ": %s, %.2f us", text, us(t, p->best));
    print_against(t, p->best, p->nccl, library, f);
    print_against(t, p->best, p->streams, "streams", f);
    print_against(t, p->best, p->program, "the best program", f);
    print_against(t, p->best, p->start, "the scenario's own", f);
    if (p->nccl != TUNE_NONE && p->best != p->nccl && us(t, p->nccl) < TIE * us(t, p->best))
        fprintf(f, "; no faster than %s by more than noise", library);
    fprintf(f, "; model error: %s\n", m->model_error[0] ? m->model_error : "not yet measured on this machine");
    print_sets(t, p, f);
}
