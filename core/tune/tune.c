#include "core/tune/tune.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/child.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/statistics/stats.h"

#define SPREAD_SHARE 3      /* one point in so many goes to the spread */
#define SPREAD_UNBOUNDED 32 /* its size where points are not bounded */
#define NO_DIFFERENCE 1.001

/* The search for one problem. */
struct search {
    struct tune *tune;
    struct tune_problem *problem;
    const struct tune_config *config;
    uint64_t deadline_ns;      /* 0: none */
    uint64_t first;            /* of the problem's units */
    struct tune_place *places; /* of every candidate so far, refused ones too */
    uint64_t *units;           /* its unit; TUNE_NONE: refused */
    uint64_t count, space;
    bool cut; /* a candidate was left out for want of points */
    enum status status;
};

uint64_t tune_time_ps(const struct run_unit *u)
{
    if (!u->result || u->result->status < 0)
        return 0;
    return stats_of(u->result->sample_ps, u->result->sample_count).median;
}

const char *tune_end_name(enum tune_end e)
{
    static const char *const names[] = {"settled", "points", "time"};

    return names[e];
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
static uint64_t next_u64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- units ---- */

static struct point *copy_point(const struct point *model)
{
    struct point *p = malloc(sizeof *p);

    assert(p);
    *p = *model;
    p->params = calloc(1, model->kernel->params_size + 1);
    assert(p->params);
    memcpy(p->params, model->params, model->kernel->params_size);
    return p;
}

static void free_point(const struct point *p)
{
    free(p->params);
    free((struct point *)p);
}

static struct run_unit *add_unit(struct tune *t, const struct point *p)
{
    const struct scenario *s = t->scenario;

    t->units = realloc(t->units, (t->unit_count + 1) * sizeof *t->units);
    assert(t->units);
    t->units[t->unit_count] = (struct run_unit){
        .point = p,
        .problem = p->problem,
        .backend = s->backend,
        .options = s->backend_options,
        .timing = p->timing,
        .unproved = "tuned: mkernel run proves it",
    };
    return &t->units[t->unit_count++];
}

/* Whether kernel and memory take the parameters; quietly, unlike run_unit_plan(). */
static bool unit_fits(struct run_unit *u, uint64_t available_bytes)
{
    struct complaint c;
    struct program program;
    struct job job;

    if (run_unit_emit(u, &program, &c) < 0)
        return false;
    job = run_unit_job(u, &program);
    u->memory_bytes = u->backend->memory_bytes(&job);
    u->tasks = program_task_count(&program);
    program_fini(&program);
    return u->memory_bytes <= available_bytes;
}

/* ---- candidates ---- */

static uint64_t find_place(const struct search *s, const struct tune_place *place)
{
    for (uint64_t i = 0; i < s->count; i++)
        if (memcmp(&s->places[i], place, sizeof *place) == 0)
            return i;
    return TUNE_NONE;
}

static bool points_left(const struct search *s)
{
    return s->config->points == 0 || s->problem->timed < s->config->points;
}

static bool time_left(const struct search *s)
{
    return s->deadline_ns == 0 || clock_now_ns() < s->deadline_ns;
}

/* Takes the candidate up for the next batch, unless it was there before or the budget forbids. */
static void propose(struct search *s, struct tune_place place)
{
    struct point *p;

    if (find_place(s, &place) != TUNE_NONE)
        return;
    s->cut |= !points_left(s);
    if (!points_left(s))
        return;
    if (s->count == s->space) {
        s->space = s->space ? 2 * s->space : 64;
        s->places = realloc(s->places, s->space * sizeof *s->places);
        s->units = realloc(s->units, s->space * sizeof *s->units);
        assert(s->places && s->units);
    }
    p = copy_point(s->problem->space.model);
    tune_space_apply(&s->problem->space, place, p);
    s->places[s->count] = place;
    s->units[s->count] = s->tune->unit_count;
    if (unit_fits(add_unit(s->tune, p), s->config->run.memory_bytes)) {
        s->problem->timed++;
    } else {
        s->tune->unit_count--;
        s->units[s->count] = TUNE_NONE;
        s->problem->refused++;
        free_point(p);
    }
    s->count++;
}

static bool faster(const struct tune *t, uint64_t unit, uint64_t than)
{
    uint64_t time_ps = tune_time_ps(&t->units[unit]);

    return time_ps > 0 && (than == TUNE_NONE || time_ps < tune_time_ps(&t->units[than]));
}

static void take_if_faster(const struct tune *t, uint64_t unit, uint64_t *best)
{
    if (faster(t, unit, *best))
        *best = unit;
}

/* A baseline may be without a model here; a program has to run. */
static void note_result(struct search *s, uint64_t i)
{
    struct tune_problem *p = s->problem;
    const struct run_unit *u = &s->tune->units[i];

    if (u->result && u->result->status < 0 && !point_is_baseline(u->point))
        s->status = status_worse(s->status, u->result->status);
    switch (u->point->program) {
    case PROGRAM_NCCL: take_if_faster(s->tune, i, &p->nccl); break;
    case PROGRAM_STREAMS: take_if_faster(s->tune, i, &p->streams); break;
    default: take_if_faster(s->tune, i, &p->program); break;
    }
}

/* Times what was added from unit `first` on. */
static void run_batch(struct search *s, uint64_t first)
{
    uint64_t count = s->tune->unit_count - first;
    enum status st = run_units(s->tune->units + first, count, &s->config->run);

    s->status = status_worse(s->status, st);
    for (uint64_t i = first; i < s->tune->unit_count; i++)
        note_result(s, i);
}

/* ---- the phases ---- */

static void add_baseline(struct search *s, enum program_choice program, const char *name)
{
    struct point *p = copy_point(s->problem->space.model);

    p->program = program;
    strcpy(p->variant, name);
    add_unit(s->tune, p);
}

static void run_own(struct search *s, const struct point *const *points, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!point_is_baseline(points[i]))
            propose(s, tune_space_place(&s->problem->space, points[i]));
    if (s->tune->scenario->backend->baseline) {
        add_baseline(s, PROGRAM_NCCL, "nccl");
        add_baseline(s, PROGRAM_STREAMS, "streams");
    }
    run_batch(s, s->first);
    s->problem->start = s->problem->program;
}

/* Each axis deals its values to the points as evenly as they go, in an order of its own. */
static void deal(uint64_t *random, uint32_t values, uint64_t points, uint8_t *out)
{
    for (uint64_t i = 0; i < points; i++)
        out[i] = (uint8_t)(i % values);
    for (uint64_t i = points; i > 1; i--) {
        uint64_t j = next_u64(random) % i;
        uint8_t swap = out[i - 1];

        out[i - 1] = out[j];
        out[j] = swap;
    }
}

static void run_spread(struct search *s)
{
    const struct tune_space *space = &s->problem->space;
    uint64_t limit = s->config->points, first = s->tune->unit_count;
    uint64_t points = limit ? limit / SPREAD_SHARE : SPREAD_UNBOUNDED;
    uint64_t random = s->config->seed;
    struct tune_place *places = calloc(points + 1, sizeof *places);
    uint8_t *column = calloc(points + 1, 1);

    assert(places && column);
    for (uint32_t axis = 0; axis < space->axis_count; axis++) {
        deal(&random, space->axes[axis].count, points, column);
        for (uint64_t i = 0; i < points; i++)
            places[i].at[axis] = column[i];
    }
    for (uint64_t i = 0; i < points; i++)
        propose(s, places[i]);
    run_batch(s, first);
    free(places);
    free(column);
}

static struct tune_place best_place(const struct search *s)
{
    for (uint64_t i = 0; i < s->count; i++)
        if (s->units[i] == s->problem->program)
            return s->places[i];
    assert(!"the best one was a candidate");
    return (struct tune_place){0};
}

/* ---- descents ---- */

/* Each form has a descent of its own: where the best fused program beats the best unfused one, but not with the
 * parameters that are best for that one, a step of one axis at a time would never see it. */
#define FORM_AXIS 0
#define FORMS 2

struct descent {
    uint64_t at;              /* the candidate where it stands; TUNE_NONE: its form does not run */
    uint32_t axis, unchanged; /* scanned next; scanned since it moved */
};

static uint64_t time_of(const struct search *s, uint64_t candidate)
{
    uint64_t unit = s->units[candidate];

    return unit == TUNE_NONE ? 0 : tune_time_ps(&s->tune->units[unit]);
}

/* The form's fastest candidate. */
static uint64_t best_of_form(const struct search *s, uint8_t form)
{
    uint64_t best = TUNE_NONE;

    for (uint64_t i = 0; i < s->count; i++)
        if (s->places[i].at[FORM_AXIS] == form && time_of(s, i) > 0 &&
            (best == TUNE_NONE || time_of(s, i) < time_of(s, best)))
            best = i;
    return best;
}

/* Times all values of one axis beside that place, and returns the fastest candidate of these. */
static uint64_t scan_axis(struct search *s, uint32_t axis, uint64_t from)
{
    struct tune_place place = s->places[from];
    uint64_t first = s->tune->unit_count, best = from;

    for (uint32_t v = 0; v < s->problem->space.axes[axis].count; v++) {
        place.at[axis] = (uint8_t)v;
        propose(s, place);
    }
    run_batch(s, first);
    for (uint32_t v = 0; v < s->problem->space.axes[axis].count; v++) {
        place.at[axis] = (uint8_t)v;
        uint64_t found = find_place(s, &place);
        if (found != TUNE_NONE && time_of(s, found) > 0 && time_of(s, found) < time_of(s, best))
            best = found;
    }
    return best;
}

static bool is_settled(const struct search *s, const struct descent *d)
{
    return d->at == TUNE_NONE || d->unchanged >= s->problem->space.axis_count - 1;
}

static void step_down(struct search *s, struct descent *d)
{
    uint64_t next = scan_axis(s, d->axis, d->at);

    d->unchanged = next == d->at ? d->unchanged + 1 : 0;
    d->at = next;
    d->axis = d->axis + 1 < s->problem->space.axis_count ? d->axis + 1 : FORM_AXIS + 1;
}

static void begin_descents(struct search *s, struct descent *d)
{
    const struct tune_space *space = &s->problem->space;
    struct tune_place own = tune_space_place(space, s->tune->units[s->problem->start].point);

    assert(space->axes[FORM_AXIS].option == NULL && space->axes[FORM_AXIS].count == FORMS);
    scan_axis(s, FORM_AXIS, find_place(s, &own)); /* where each form can begin */
    for (uint8_t form = 0; form < FORMS; form++)
        d[form] = (struct descent){.at = best_of_form(s, form), .axis = FORM_AXIS + 1};
}

/* Both descents in turn. */
static void run_descents(struct search *s)
{
    struct descent descents[FORMS];
    uint32_t settled = 0;

    begin_descents(s, descents);
    while (settled < FORMS && s->status >= 0 && !s->cut && time_left(s)) {
        settled = 0;
        for (uint32_t i = 0; i < FORMS; i++) {
            if (is_settled(s, &descents[i]))
                settled++;
            else if (s->status >= 0 && !s->cut)
                step_down(s, &descents[i]);
        }
    }
    s->problem->end = s->cut ? TUNE_POINTS : settled < FORMS ? TUNE_TIME : TUNE_SETTLED;
}

/* What makes no difference goes back to what the scenario says. */
static void run_plain(struct search *s)
{
    struct tune_problem *p = s->problem;
    struct tune_place own = tune_space_place(&p->space, s->tune->units[p->start].point);
    uint64_t fastest_ps = tune_time_ps(&s->tune->units[p->program]);

    for (uint32_t axis = 0; axis < p->space.axis_count && s->status >= 0; axis++) {
        struct tune_place place = best_place(s);
        uint64_t first = s->tune->unit_count, found, time_ps;

        place.at[axis] = own.at[axis];
        propose(s, place);
        run_batch(s, first);
        found = find_place(s, &place);
        if (found == TUNE_NONE || s->units[found] == TUNE_NONE)
            continue;
        time_ps = tune_time_ps(&s->tune->units[s->units[found]]);
        if (time_ps > 0 && (double)time_ps <= NO_DIFFERENCE * (double)fastest_ps)
            p->program = s->units[found];
    }
}

static void choose(struct search *s)
{
    struct tune_problem *p = s->problem;

    p->best = p->nccl;
    if (p->streams != TUNE_NONE)
        take_if_faster(s->tune, p->streams, &p->best);
    if (p->program != TUNE_NONE)
        take_if_faster(s->tune, p->program, &p->best);
}

/* ---- problems ---- */

/* The points of the problem that points[first] is the first of; 0 when it is not. */
static uint64_t collect(const struct scenario *s, uint64_t first, const struct point **out)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < s->point_count; i++) {
        if (!point_same_problem(&s->points[i], &s->points[first]))
            continue;
        if (i < first)
            return 0;
        out[count++] = &s->points[i];
    }
    return count;
}

static enum status begin_problem(const struct scenario *s, const struct point *const *points, uint64_t count,
                                 struct tune_problem *out)
{
    bool program = false;

    for (uint64_t i = 0; i < count; i++)
        program |= !point_is_baseline(points[i]);
    if (!program) {
        log_error("%s: all variants are baselines; tune needs one of program fused or unfused to begin with", s->path);
        return ST_INPUT;
    }
    *out = (struct tune_problem){
        .start = TUNE_NONE, .program = TUNE_NONE, .nccl = TUNE_NONE, .streams = TUNE_NONE, .best = TUNE_NONE};
    if (tune_space_create(points, count, &out->space))
        return ST_OK;
    log_error("%s: kernel %s: more than %d parameters, or one with more than %d values, to search", s->path,
              points[0]->kernel->name, TUNE_AXES_MAX, TUNE_VALUES_MAX);
    return ST_INPUT;
}

static enum status tune_problem(struct tune *t, const struct tune_config *config, uint64_t deadline_ns,
                                const struct point *const *points, uint64_t count)
{
    struct search s = {.tune = t, .config = config, .deadline_ns = deadline_ns, .first = t->unit_count};

    t->problems = realloc(t->problems, (t->problem_count + 1) * sizeof *t->problems);
    assert(t->problems);
    s.problem = &t->problems[t->problem_count];
    TRY(begin_problem(t->scenario, points, count, s.problem));
    run_own(&s, points, count);
    if (s.status >= 0 && s.problem->program == TUNE_NONE) {
        log_error("%s: no variant of the scenario can run as it stands: mkernel run says why", t->scenario->path);
        s.status = ST_INPUT;
    }
    if (s.status >= 0 && points_left(&s) && time_left(&s))
        run_spread(&s);
    if (s.status >= 0)
        run_descents(&s);
    if (s.status >= 0)
        run_plain(&s);
    choose(&s);
    t->problem_count += s.status >= 0;
    free(s.places);
    free(s.units);
    return s.status;
}

enum status tune_run(const struct scenario *s, const struct tune_config *config, struct tune *out)
{
    const struct point **points = calloc(s->point_count + 1, sizeof *points);
    uint64_t deadline_ns = config->time_ns ? clock_now_ns() + config->time_ns : 0;
    enum status st = ST_OK;

    assert(points);
    *out = (struct tune){.scenario = s};
    for (uint64_t i = 0; st >= 0 && i < s->point_count; i++) {
        uint64_t count = collect(s, i, points);

        if (count > 0)
            st = tune_problem(out, config, deadline_ns, points, count);
    }
    free(points);
    return st;
}

void tune_destroy(struct tune *t)
{
    for (uint64_t i = 0; i < t->unit_count; i++) {
        free(t->units[i].result);
        free_point(t->units[i].point);
    }
    free(t->units);
    free(t->problems);
    *t = (struct tune){0};
}
