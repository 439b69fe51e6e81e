#include "core/parse/yaml.h"

#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse/yaml_file.h"

#define BLOCK_BYTES (64u << 10)

struct yaml_block {
    struct yaml_block *next;
    char bytes[BLOCK_BYTES] __attribute__((aligned(16)));
};

struct reader {
    struct fy_parser *parser;
    struct yaml *yaml;
    const char *name;
    bool placeless; /* the text is no file: every place is line 0 */
};

/* ---- memory ---- */

static void *yaml_alloc(struct yaml *y, size_t size)
{
    void *p;

    size = (size + 15) / 16 * 16;
    if (!y->blocks || y->block_used + size > sizeof y->blocks->bytes) {
        struct yaml_block *block = calloc(1, sizeof *block);

        if (!block)
            abort(); /* bounded by YAML_FILE_BYTES_MAX: a few MB */
        block->next = y->blocks;
        y->blocks = block;
        y->block_used = 0;
    }
    p = y->blocks->bytes + y->block_used;
    y->block_used += size;
    return p;
}

static char *copy_text(struct yaml *y, const char *text, size_t size)
{
    char *copy = yaml_alloc(y, size + 1);

    memcpy(copy, text, size);
    return copy;
}

const char *yaml_keep_text(struct yaml *y, const char *text)
{
    return copy_text(y, text, strlen(text));
}

void yaml_fini(struct yaml *y)
{
    while (y->blocks) {
        struct yaml_block *next = y->blocks->next;

        free(y->blocks);
        y->blocks = next;
    }
    *y = (struct yaml){0};
}

/* ---- the tree ---- */

struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
    if (!map || map->kind != YAML_MAP)
        return NULL;
    for (struct yaml_node *n = map->first; n; n = n->next)
        if (strcmp(n->key, key) == 0)
            return n;
    return NULL;
}

static void append(struct yaml_node *parent, struct yaml_node *child)
{
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
}

void yaml_set(struct yaml *y, struct yaml_node *map, const char *key, struct yaml_node *value)
{
    struct yaml_node *old = yaml_get(map, key);

    value->key = old ? old->key : copy_text(y, key, strlen(key));
    value->key_place = value->place;
    if (!old) {
        append(map, value);
        return;
    }
    value->next = old->next;
    *old = *value; /* in its place: the order of keys is the file's */
}

struct yaml_node *yaml_new_map(struct yaml *y, struct place place)
{
    struct yaml_node *map = yaml_alloc(y, sizeof *map);

    map->kind = YAML_MAP;
    map->place = place;
    return map;
}

const char *yaml_kind_name(enum yaml_kind kind)
{
    switch (kind) {
    case YAML_SCALAR: return "a single value";
    case YAML_LIST: return "a list";
    case YAML_MAP: return "a map";
    }
    abort();
}

/* ---- reading events ---- */

/* Of a line and column that begin at 0, as marks do. */
static struct place place_at(const struct reader *r, int line, int column)
{
    if (r->placeless)
        return (struct place){.file = r->name};
    return (struct place){r->name, (uint32_t)(line < 0 ? 0 : line) + 1, (uint32_t)(column < 0 ? 0 : column) + 1};
}

static struct place event_place(const struct reader *r, struct fy_event *e)
{
    const struct fy_mark *mark = e ? fy_event_start_mark(e) : NULL;

    return mark ? place_at(r, mark->line, mark->column) : place_at(r, 0, 0);
}

static enum status syntax_error(const struct reader *r)
{
    void *cursor = NULL;
    struct fy_diag *diag = fy_parser_get_diag(r->parser);
    struct fy_diag_error *e = fy_diag_errors_iterate(diag, &cursor);
    struct place place = e ? place_at(r, e->line - 1, e->column - 1) : place_at(r, 0, 0); /* these begin at 1 */

    place_error(&place, "not valid YAML: %s", e && e->msg ? e->msg : "the parser gave up");
    fy_diag_unref(diag);
    return ST_INPUT;
}

static enum status next_event(const struct reader *r, struct fy_event **out)
{
    *out = fy_parser_parse(r->parser);
    if (!*out || fy_parser_get_stream_error(r->parser)) {
        fy_parser_event_free(r->parser, *out);
        *out = NULL;
        return syntax_error(r);
    }
    return ST_OK;
}

static enum status refuse_event(const struct reader *r, struct fy_event *e, const char *text)
{
    struct place place = event_place(r, e);

    place_error(&place, "%s", text);
    return ST_INPUT;
}

static enum status read_node(struct reader *r, struct fy_event *e, unsigned depth, struct yaml_node **out);

static enum status read_next_node(struct reader *r, unsigned depth, struct yaml_node **out)
{
    struct fy_event *e;
    enum status st;

    TRY(next_event(r, &e));
    st = read_node(r, e, depth, out);
    fy_parser_event_free(r->parser, e);
    return st;
}

static enum status read_scalar(struct reader *r, struct fy_event *e, struct yaml_node *node)
{
    size_t size = 0;
    const char *text = e->scalar.value ? fy_token_get_text(e->scalar.value, &size) : "";

    if (!text)
        text = "", size = 0;
    if (size > YAML_SCALAR_BYTES_MAX)
        return refuse_event(r, e, "this value is longer than any that is expected");
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            return refuse_event(r, e,
                                "this value holds a line break or control character; "
                                "expected one line of text");
    node->text = copy_text(r->yaml, text, size);
    return ST_OK;
}

static enum status read_list(struct reader *r, unsigned depth, struct yaml_node *list)
{
    for (;;) {
        struct fy_event *e;
        struct yaml_node *child = NULL;
        enum status st = ST_OK;
        bool end;

        TRY(next_event(r, &e));
        end = e->type == FYET_SEQUENCE_END;
        if (!end)
            st = read_node(r, e, depth + 1, &child);
        fy_parser_event_free(r->parser, e);
        TRY(st);
        if (end)
            return ST_OK;
        append(list, child);
    }
}

static enum status check_key(const struct yaml_node *map, const struct yaml_node *key)
{
    const struct yaml_node *twin;
    char where[PLACE_TEXT_BYTES];

    if (key->kind != YAML_SCALAR) {
        place_error(&key->place, "%s is used as a key; expected a name", yaml_kind_name(key->kind));
        return ST_INPUT;
    }
    twin = yaml_get(map, key->text);
    if (twin) {
        place_error(&key->place, "key \"%.60s\" stands twice; expected it once (first at %s)", key->text,
                    place_text(&twin->key_place, where));
        return ST_INPUT;
    }
    if (map->count == YAML_KEYS_MAX) {
        place_error(&key->place, "more than %d keys in one map", YAML_KEYS_MAX);
        return ST_INPUT;
    }
    return ST_OK;
}

static enum status read_map(struct reader *r, unsigned depth, struct yaml_node *map)
{
    for (;;) {
        struct fy_event *e;
        struct yaml_node *key = NULL, *value;
        enum status st = ST_OK;
        bool end;

        TRY(next_event(r, &e));
        end = e->type == FYET_MAPPING_END;
        if (!end)
            st = read_node(r, e, depth + 1, &key);
        fy_parser_event_free(r->parser, e);
        TRY(st);
        if (end)
            return ST_OK;
        TRY(check_key(map, key));
        TRY(read_next_node(r, depth + 1, &value));
        value->key = key->text;
        value->key_place = key->place;
        if (value->kind == YAML_SCALAR && value->text[0] == '\0')
            value->place = key->place; /* a value that is not there stands nowhere */
        append(map, value);
    }
}

static enum status read_node(struct reader *r, struct fy_event *e, unsigned depth, struct yaml_node **out)
{
    struct yaml_node *node;

    if (e->type == FYET_ALIAS)
        return refuse_event(r, e, "aliases (*name) are not supported here; expected a plain value");
    if (fy_event_get_anchor_token(e) || fy_event_get_tag_token(e))
        return refuse_event(r, e,
                            "anchors (&name) and tags (!name) are not supported here; "
                            "expected a plain value");
    if (depth > YAML_DEPTH_MAX)
        return refuse_event(r, e, "nested deeper than any file of this kind");
    if (++r->yaml->node_count > YAML_NODES_MAX)
        return refuse_event(r, e, "more values than a file of this kind may hold (200000)");

    node = yaml_alloc(r->yaml, sizeof *node);
    node->place = event_place(r, e);
    *out = node;
    switch (e->type) {
    case FYET_SCALAR: node->kind = YAML_SCALAR; return read_scalar(r, e, node);
    case FYET_SEQUENCE_START: node->kind = YAML_LIST; return read_list(r, depth, node);
    case FYET_MAPPING_START: node->kind = YAML_MAP; return read_map(r, depth, node);
    default: return refuse_event(r, e, "not valid YAML: expected a value");
    }
}

/* Eats one event, which must be of `type`. */
static enum status expect_event(struct reader *r, enum fy_event_type type, const char *otherwise)
{
    struct fy_event *e;
    enum status st = ST_OK;

    TRY(next_event(r, &e));
    if (e->type != type)
        st = refuse_event(r, e, otherwise);
    fy_parser_event_free(r->parser, e);
    return st;
}

static enum status read_document(struct reader *r, struct yaml_node **out)
{
    TRY(expect_event(r, FYET_STREAM_START, "not valid YAML"));
    TRY(expect_event(r, FYET_DOCUMENT_START, "the file is empty; expected keys and values"));
    TRY(read_next_node(r, 0, out));
    TRY(expect_event(r, FYET_DOCUMENT_END, "not valid YAML: expected the end of the document"));
    return expect_event(r, FYET_STREAM_END, "a second document begins here; expected one a file");
}

static enum status read_text(struct reader *r, const char *text, size_t text_bytes, struct yaml_node **out)
{
    struct fy_diag_cfg diag_cfg;
    struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG};
    enum status st = ST_MEMORY;

    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    cfg.diag = fy_diag_create(&diag_cfg);
    if (cfg.diag)
        fy_diag_set_collect_errors(cfg.diag, true);
    r->parser = cfg.diag ? fy_parser_create(&cfg) : NULL;
    if (r->parser && fy_parser_set_string(r->parser, text, text_bytes) == 0)
        st = read_document(r, out);
    if (r->parser)
        fy_parser_destroy(r->parser);
    if (cfg.diag)
        fy_diag_destroy(cfg.diag);
    return st;
}

enum status yaml_parse(const char *name, const char *text, size_t text_bytes, struct yaml *out)
{
    struct yaml y = {0};
    struct reader r = {.yaml = &y, .name = copy_text(&y, name, strlen(name))};
    enum status st = yaml_check_text(name, text, text_bytes);

    if (st == ST_OK)
        st = read_text(&r, text, text_bytes, &y.root);
    if (st != ST_OK) {
        yaml_fini(&y);
        return st;
    }
    *out = y;
    return ST_OK;
}

enum status yaml_parse_into(struct yaml *y, const char *name, const char *text, struct yaml_node **out)
{
    struct reader r = {.yaml = y, .name = copy_text(y, name, strlen(name)), .placeless = true};

    TRY(yaml_check_text(name, text, strlen(text)));
    return read_text(&r, text, strlen(text), out);
}

enum status yaml_load(const char *path, struct yaml *out)
{
    char *text;
    size_t text_bytes;
    enum status st;

    TRY(yaml_read_file(path, &text, &text_bytes));
    st = yaml_parse(path, text, text_bytes, out);
    free(text);
    return st;
}
