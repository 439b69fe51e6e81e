/* Any bytes as files of NCCL and nccl-tests, and as a result file of ours: an answer or one message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/imports/nccl_tests.h"
#include "core/imports/nccl_xml.h"
#include "core/results/records.h"
#include "fuzz_scenario.h"

static void parse_all(const char *text, size_t size)
{
    struct nccl_xml xml = {0};
    struct nccl_tests tests;
    struct records records;

    (void)nccl_xml_parse("fuzz.xml", text, size, &xml);
    if (nccl_tests_parse("fuzz.txt", text, size, NULL, &tests) == ST_OK)
        nccl_tests_fini(&tests);
    if (nccl_tests_parse("fuzz.txt", text, size, "all_gather", &tests) == ST_OK)
        nccl_tests_fini(&tests);
    if (records_parse("fuzz.jsonl", text, size, &records) == ST_OK)
        records_fini(&records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size > 1 << 20)
        return 0;
    text = malloc(size + 1); /* as file_read() hands it over: with a 0 behind it */
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    parse_all(text, size);
    free(text);
    return 0;
}
