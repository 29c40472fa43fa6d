/* What the files of the kernel share: types, statuses, tolerances, the floating-point environment.
 *
 * Every exported function works on arrays that its caller owns, keeps nothing between calls, and
 * returns a status. Long work is done in parts: a function that returns MORE is called again with
 * the same arguments, and goes on from where it was. How much a part is, is counted in entries of
 * matrices, so that no clock decides anything.
 */

#ifndef QUILTWORK_KERNEL_H
#define QUILTWORK_KERNEL_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "The kernel needs arithmetic in doubles: compile for x86-64, arm64 or another such machine."
#endif
#ifdef __FAST_MATH__
#error "The kernel's bounds need IEEE arithmetic: compile without -ffast-math."
#endif

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

enum status {
    DONE = 0,
    MORE = 1,
    BAD_SIZES = -1,  /* a size, an index or a place is out of range */
    BAD_ROWS = -2,   /* an entry of a row is negative or not finite */
    BAD_TREES = -3,  /* a kept tree names a state that is not there */
    SMALL_ROOM = -4  /* the room to work in is too small */
};

/* What rounding and tolerances of the program rest on; see docs/theory/sweep.md. The package reads
 * the same numbers from sweep/program.py, and a test holds them equal. */
#define LARGEST_LIMIT 300.0 /* larger limits count as none: single entries bound the ratio then */
#define SMALLEST_ENTRY 1e-140
#define MARGIN 0x1p-40 /* what a bound may exceed its program by, in logarithms */
#define SLACK 0x1p-44
#define SIGN 0x1p-46
#define FEASIBLE 0x1p-30

#define MOST_STATES 4096
#define MOST_CELLS (INT64_C(1) << 40)

/* The second where it is less or more, else the first: so a NaN that comes second is passed over. */
static inline double lesser(double one, double other) { return other < one ? other : one; }
static inline double greater(double one, double other) { return other > one ? other : one; }

/* Rounding to nearest, and no flushing of small numbers to zero, whatever the process has set. */
#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
typedef unsigned int environment;
static inline environment plain_environment(void) {
    environment before = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return before;
}
static inline void restore_environment(environment before) { _mm_setcsr(before); }
#elif defined(__aarch64__)
typedef uint64_t environment;
static inline environment plain_environment(void) {
    environment before, plain = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(plain));
    return before;
}
static inline void restore_environment(environment before) {
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
}
#else
#include <fenv.h>
typedef fenv_t environment;
static inline environment plain_environment(void) {
    environment before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}
static inline void restore_environment(environment before) { fesetenv(&before); }
#endif

#if defined(__GNUC__)
#define APART __attribute__((noinline)) /* its arithmetic stays within the environment */
#else
#define APART
#endif

/* A spanning tree: `parent` is the node itself at the root; `upper` tells whether a node is at its
 * upper or its lower limit above its parent. */
struct tree {
    int64_t *parent;
    uint8_t *upper;
};

/* One program: two rows and the closed k×k limits between their states. */
struct program {
    int64_t size;
    const double *above, *below, *limits;
};

/* Room for one program, and how much work was done in it. */
struct room {
    double *v, *p, *q, *p_below, *q_below, *left, *inside; /* of each node */
    double *flow;           /* what a node and those below it have of p less of q */
    double *rows, *limits;  /* the program on the states that its rows reach */
    int64_t *nodes, *child, *sibling, *reached, *place, *branch;
    uint8_t *flags;
    int64_t work;
};

/* Kept trees, one per program: `order` lists the nodes from the root outwards, -1 first where only
 * some states were reached, -2 where there is no tree. */
struct kept {
    int64_t *parent, *order;
    uint8_t *upper;
};

/* starting_trees.c */
void initial_star(const struct program *given, struct tree tree, double *v);
int64_t order_tree(const struct program *given, struct tree tree, struct room *room);
double graft_subtree(const struct program *given, struct tree tree, struct room *room, int64_t node,
                     int down);
void weigh(const struct program *given, struct room *room, double *top, double *bottom);
int alternating_ascent(const struct program *given, struct tree tree, struct room *room);
int keeps_limits(const struct program *given, struct tree tree, struct room *room);

/* programs.c */
int64_t program_room(int64_t size);
char *lay_out_program(struct room *room, int64_t size, char *memory);
double best_tree(const struct program *given, const double *ratio, struct kept kept, int64_t row,
                 int64_t beside, struct room *room);
int are_rows(const double *entries, int64_t count);
int are_trees(struct kept kept, int64_t count, int64_t size);

#endif
