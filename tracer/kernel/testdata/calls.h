/* calls.h: a library with functions like OpenCL's, which the driver calls and the tests probe. */
#include <stddef.h>
#include <stdint.h>

uint64_t create(uint64_t context, uint64_t flags, size_t size, void *host, int *error);
int set(void *kernel, uint32_t index, size_t size, const void *value);
int name(const char *text);
int list(uint32_t count, const uint64_t *values);
int use(uint64_t object);
int hold(int n);
int launch(uint64_t queue, int a, int b, int c, int d, int e, uint32_t count, const uint64_t *list, uint64_t *event);
