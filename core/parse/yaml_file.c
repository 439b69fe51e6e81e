#include "core/parse/yaml_file.h"

#include <string.h>

#include "core/file.h"
#include "core/log.h"
#include "core/parse/place.h"
#include "core/parse/yaml.h"

enum status yaml_read_file(const char *path, char **text_out, size_t *text_bytes_out)
{
    return file_read(path, "a YAML file of at most 1 MiB", YAML_FILE_BYTES_MAX, text_out, text_bytes_out);
}

/* Length of the UTF-8 sequence at `s`, 0: broken, overlong or a surrogate. */
static size_t sequence_bytes(const unsigned char *s, size_t left)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = size == 1 ? s[0] : s[0] & (0xffu >> (size + 1));

    if (size == 0 || size > left)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    if (size > 1 && (code < smallest[size] || code > 0x10ffff || (code >> 11) == 0x1b))
        return 0;
    return size;
}

enum status yaml_check_text(const char *name, const char *text, size_t text_bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    struct place place = {name, 1, 1};

    for (size_t i = 0; i < text_bytes;) {
        size_t size = sequence_bytes(s + i, text_bytes - i);
        bool control = s[i] < ' ' && s[i] != '\n' && s[i] != '\r' && s[i] != '\t';

        if (size == 0 || control || s[i] == 127) {
            place_error(&place, "byte 0x%02x is not text; expected a YAML file in UTF-8", s[i]);
            return ST_INPUT;
        }
        place.column++;
        if (s[i] == '\n') {
            place.line++;
            place.column = 1;
        }
        i += size;
    }
    return ST_OK;
}
