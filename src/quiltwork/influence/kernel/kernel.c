/* Which sources this library was made from: building.py writes their digest into it. */

#include "kernel.h"

#ifndef KERNEL_DIGEST
#define KERNEL_DIGEST "unknown"
#endif

EXPORTED const char *kernel_digest(void) { return KERNEL_DIGEST; }
