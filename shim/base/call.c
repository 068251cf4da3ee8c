/* call.c: the guard. */
#include "call.h"

__thread int gmt_inside __attribute__((tls_model("initial-exec")));
__thread int gmt_in_callback __attribute__((tls_model("initial-exec")));
