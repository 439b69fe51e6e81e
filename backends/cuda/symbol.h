/* Functions of libraries that are opened at run time. */
#ifndef BACKENDS_CUDA_SYMBOL_H
#define BACKENDS_CUDA_SYMBOL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* *function_out is a pointer to a function.  False: the library has none of that name. */
static inline bool symbol_find(void *library, const char *name, void *function_out)
{
    void *symbol = dlsym(library, name);

    memcpy(function_out, &symbol, sizeof symbol);
    return symbol != NULL;
}

#endif
