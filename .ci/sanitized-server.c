/* Lets the stock valkey-server run on the sanitizers' runtimes. Preloaded behind libasan.
 *
 * The server is linked with jemalloc and takes most of its memory through malloc and free, which
 * AddressSanitizer replaces; but it also calls two functions that only jemalloc has, and those
 * would be handed pointers that jemalloc never allocated. Here they go where everything else goes,
 * so that the server's memory is watched too, and what the module leaks is found at shutdown.
 *
 * The server also overwrites the environment it was started with, to set its process title. The
 * runtime for undefined behaviour looks there only when the module is loaded, which is too late. */
#include <stddef.h>
#include <stdlib.h>

void sdallocx(void *pointer, size_t size, int flags);
size_t nallocx(size_t size, int flags);
const char *__ubsan_default_options(void);

void sdallocx(void *pointer, size_t size, int flags) {
    (void)size;
    (void)flags;
    free(pointer);
}

size_t nallocx(size_t size, int flags) {
    (void)flags;
    return size;
}

const char *__ubsan_default_options(void) {
    const char *options = getenv("UBSAN_OPTIONS");
    return options ? options : "";
}
