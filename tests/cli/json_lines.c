/* Reads JSON lines, prints the "record" of each; fails at the first line that is none. */
#include <jansson.h>
#include <stdlib.h>

int main(void)
{
    char *line = NULL;
    size_t space = 0;

    while (getline(&line, &space, stdin) > 0) {
        json_error_t error;
        json_t *o = json_loads(line, 0, &error);

        if (!json_string_value(json_object_get(o, "record"))) {
            fprintf(stderr, "not a record: %s", line);
            return EXIT_FAILURE;
        }
        printf("%s\n", json_string_value(json_object_get(o, "record")));
        json_decref(o);
    }
    free(line);
    return EXIT_SUCCESS;
}
