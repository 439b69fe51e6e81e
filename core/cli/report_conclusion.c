#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cli/report.h"
#include "core/results/record.h"

#define TIE 0.005         /* closer to 1 than this is neither a win nor a loss */
#define HIDDEN_PERCENT 10 /* of waiting and idling: with less, communication counts as hidden */
#define BUSY_LINK 0.80

/* How fused stands against one contestant over all problems of a kernel. */
struct standing {
    uint64_t shapes, wins, losses;
    double worst, best;
    uint64_t worst_group, best_group;
};

static double ratio_against(const struct compare *c, const struct compare_group *g, enum program_choice whom)
{
    switch (whom) {
    case PROGRAM_NCCL: return compare_ratio(c, g->nccl, g->fused);
    case PROGRAM_STREAMS: return compare_ratio(c, g->streams, g->fused);
    default: return compare_ratio(c, g->unfused, g->fused);
    }
}

static struct standing stand(const struct compare *c, const struct kernel *k, enum program_choice whom)
{
    struct standing s = {0};

    for (uint64_t i = 0; i < c->group_count; i++) {
        const struct compare_group *g = &c->groups[i];
        double ratio = ratio_against(c, g, whom);

        if (c->points[g->first].point->kernel != k || ratio <= 0)
            continue;
        if (s.shapes++ == 0 || ratio < s.worst) {
            s.worst = ratio;
            s.worst_group = i;
        }
        if (s.shapes == 1 || ratio > s.best) {
            s.best = ratio;
            s.best_group = i;
        }
        s.wins += ratio > 1 + TIE;
        s.losses += ratio < 1 - TIE;
    }
    return s;
}

static void print_range(const struct standing *s, FILE *f)
{
    char worst[32], best[32];

    snprintf(worst, sizeof worst, "%.2fx", s->worst);
    snprintf(best, sizeof best, "%.2fx", s->best);
    if (strcmp(worst, best) == 0)
        fprintf(f, "%s", best);
    else
        fprintf(f, "%s to %s", worst, best);
}

static void print_verdict(const struct standing *s, const char *whom, FILE *f)
{
    if (s->wins == s->shapes)
        fprintf(f, "wins over %s by ", whom);
    else if (s->losses == s->shapes)
        fprintf(f, "loses to %s, reaching ", whom);
    else if (s->wins == 0 && s->losses == 0)
        fprintf(f, "ties with %s at ", whom);
    else
        fprintf(f, "wins over %s at %" PRIu64 " of %" PRIu64 " problems, ", whom, s->wins, s->shapes);
    print_range(s, f);
    fprintf(f, s->losses == s->shapes ? " of its speed" : "");
}

/* The harder baseline: in brackets, so that "because" speaks of the first, which fused `loses` to or not. */
static void print_streams(const struct standing *s, bool loses, FILE *f)
{
    if (s->wins == 0 && s->losses == 0)
        fprintf(f, " (%s ties with hand-overlapped streams at ", loses ? "but" : "and");
    else if (s->losses == 0)
        fprintf(f, " (%s hand-overlapped streams by ", loses ? "but wins over" : "and over");
    else if (s->losses == s->shapes)
        fprintf(f, " (%s trails hand-overlapped streams: ", loses ? "and" : "but");
    else
        fprintf(f,
                " (%s trails hand-overlapped streams at %" PRIu64 " of %" PRIu64 " problems: ", loses ? "and" : "but",
                s->losses, s->shapes);
    print_range(s, f);
    fprintf(f, s->losses ? " of their speed)" : ")");
}

/* ---- why ---- */

static uint64_t crew_waiting(const struct run_result *r, const struct crew_result *crew)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->cause_count; i++)
        sum += crew->waiting_ps[i];
    return sum;
}

/* The crew that does most of the work: the one whose waiting costs. */
static const struct crew_result *main_crew(const struct run_result *r)
{
    const struct crew_result *main = &r->crews[0];

    for (uint32_t i = 0; i < r->crew_count; i++) {
        if (strcmp(r->crews[i].name, "compute") == 0)
            return &r->crews[i];
        if (r->crews[i].busy_ps > main->busy_ps)
            main = &r->crews[i];
    }
    return main;
}

static const char *main_cause(const struct run_result *r, const struct crew_result *crew)
{
    uint32_t top = 0;

    for (uint32_t i = 1; i < r->cause_count; i++)
        if (crew->waiting_ps[i] > crew->waiting_ps[top])
            top = i;
    return r->causes[top];
}

static void print_busy_link(const struct run_result *r, FILE *f)
{
    const struct link_result *top = NULL;

    for (uint32_t i = 0; i < r->link_count; i++)
        if (!top || r->links[i].max_busy > top->max_busy)
            top = &r->links[i];
    if (top && top->max_busy >= BUSY_LINK)
        fprintf(f, ", with %s busy %.0f %% of the time", top->name, 100 * top->max_busy);
}

static void print_hidden(const struct crew_result *crew, double waiting, const struct point *p, bool wins, FILE *f)
{
    const struct machine *machine = p->machine;

    if (wins)
        fprintf(f, "communication hides behind %s: the %s crew waits %.0f %% of its time", p->kernel->family->work,
                crew->name, waiting);
    else if (crew->workers >= machine->gpu.sms)
        fprintf(f, "there is nothing to hide: the %s crew waits %.0f %% of its time on all %" PRIu64 " SMs", crew->name,
                waiting, machine->gpu.sms);
    else
        fprintf(f,
                "hiding communication costs more than it saves: the %s crew waits only %.0f %% of "
                "its time but has %" PRIu32 " of %" PRIu64 " SMs",
                crew->name, waiting, crew->workers, machine->gpu.sms);
}

/* What the main crew of a run did with its time. */
static void print_cause(const struct run_result *r, const struct point *p, bool wins, FILE *f)
{
    const struct crew_result *crew = main_crew(r);
    uint64_t waiting_ps = crew_waiting(r, crew);
    double all = (double)(crew->busy_ps + waiting_ps + crew->idle_ps);
    double waiting = all > 0 ? 100 * (double)waiting_ps / all : 0;
    double idle = all > 0 ? 100 * (double)crew->idle_ps / all : 0;
    char hides[80] = "", elsewhere[80];

    if (wins)
        snprintf(hides, sizeof hides, "part of communication hides behind %s, though ", p->kernel->family->work);
    snprintf(elsewhere, sizeof elsewhere, "little of the time goes to %s: ", p->kernel->family->work);

    if (waiting + idle < HIDDEN_PERCENT) {
        print_hidden(crew, waiting, p, wins, f);
        return;
    }
    if (waiting >= idle)
        fprintf(f, "%sthe %s crew waits %.0f %% of its time, mostly for \"%s\"", hides, crew->name, waiting,
                main_cause(r, crew));
    else
        fprintf(f, "%sthe %s crew has nothing left to do %.0f %% of the time",
                wins ? "it waits for less, though " : elsewhere, crew->name, idle);
    print_busy_link(r, f);
}

static void print_why(const struct compare *c, uint64_t group, bool wins, FILE *f)
{
    const struct run_unit *u = &c->points[c->groups[group].fused];
    char text[PROBLEM_TEXT_BYTES];

    if (u->result->crew_count == 0)
        return;
    fprintf(f, ", because ");
    print_cause(u->result, u->point, wins, f);
    fprintf(f, " (%s, %s)", problem_size_text(u->point->kernel->family, &u->problem, text),
            record_mode_name(u->timing.mode));
}

static void print_honesty(const struct backend *b, const struct run_unit *u, FILE *f)
{
    const struct machine *m = u->point->machine;

    if (b->exclusive && u->result && strcmp(u->result->model, "threads") != 0)
        fprintf(f, "; measured on %s.\n", u->result->model);
    else if (b->exclusive)
        fprintf(f, "; measured on this host's processors, which says nothing about GPUs.\n");
    else
        fprintf(f, "; model error: %s.\n", m->model_error[0] ? m->model_error : "not yet measured on this machine");
}

/* ---- a kernel ---- */

static void conclude(const struct compare *c, const struct kernel *k, const struct backend *b, FILE *f)
{
    struct standing nccl = stand(c, k, PROGRAM_NCCL);
    struct standing streams = stand(c, k, PROGRAM_STREAMS);
    struct standing unfused = stand(c, k, PROGRAM_UNFUSED);
    struct standing main = nccl.shapes ? nccl : streams.shapes ? streams : unfused;
    const char *whom = nccl.shapes      ? k->family->library
                       : streams.shapes ? "hand-overlapped streams"
                                        : "the unfused form";
    bool wins = main.losses == 0;

    if (main.shapes == 0) {
        fprintf(f, "%s: nothing to compare: a fused result and one of another variant are needed.\n", k->name);
        return;
    }
    fprintf(f, "%s: fused ", k->name);
    print_verdict(&main, whom, f);
    if (nccl.shapes && streams.shapes)
        print_streams(&streams, main.losses == main.shapes, f);
    print_why(c, wins ? main.best_group : main.worst_group, wins, f);
    print_honesty(b, &c->points[0], f);
}

static bool seen_before(const struct compare *c, uint64_t group)
{
    for (uint64_t i = 0; i < group; i++)
        if (c->points[c->groups[i].first].point->kernel == c->points[c->groups[group].first].point->kernel)
            return true;
    return false;
}

void report_conclusion(const struct run_plan *plan, const struct compare *c, FILE *f)
{
    for (uint64_t i = 0; i < c->group_count; i++)
        if (!seen_before(c, i))
            conclude(c, c->points[c->groups[i].first].point->kernel, plan->scenario->backend, f);
}
