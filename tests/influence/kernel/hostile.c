/* Calls the kernel with hostile input for sanitizers to watch: every array is as long as it must be
 * and no longer, and calls are cut into parts of random length. Prints how many ended how. */

#include <stdio.h>
#include <stdlib.h>

#include "linear.c"
#include "product.c"
#include "programs.c"
#include "starting_trees.c"
#include "sweep.c"

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

static double uniform(void) { return (double)draw(1u << 30) / (1u << 30); }

/* What a bound or a limit may be by mistake. */
static double odd(int worst) {
    const double numbers[] = {0.0,    -0.0,      1e-310, 5e-324,    1e-140,   1e-200,
                              1e300,  DBL_MAX,   -1.0,   -DBL_MAX,  INFINITY, -INFINITY,
                              NAN,    299.99999, 700.0,  -700.0,    1.0,      0x1p-40};
    return draw((uint64_t)worst) ? 3 * uniform() : numbers[draw(sizeof numbers / sizeof *numbers)];
}

/* A row entry: ordinary, 0, subnormal, and where that is asked for, refused. */
static double entry(int wild) {
    const uint64_t kind = draw(8);
    if (kind < 2) return 0.0;
    if (kind == 2) return 1e-310 * uniform();
    if (kind == 3) return pow(10, -300 * uniform());
    if (wild && !draw(200)) return odd(2);
    return uniform();
}

static double *numbers(int64_t count) { return malloc((size_t)count * sizeof(double)); }
static int64_t *places(int64_t count) { return malloc((size_t)count * sizeof(int64_t)); }

static int64_t ended[8];

static int64_t some_work(void) { return draw(3) ? (int64_t)draw(2000) : INT64_C(1) << 40; }

static void try_solve(int wild) {
    const int64_t size = 1 + (int64_t)draw(9), count = (int64_t)draw(8);
    const int64_t groups = 1 + (int64_t)draw(2);
    double *above = numbers(count * size), *below = numbers(count * size);
    double *limits = numbers(groups * size * size), *values = numbers(count);
    double *slope = numbers(count * size);
    int64_t *group = places(count), *parent = places(count * size), *order = places(count * size);
    int64_t *high = places(count * size), *low = places(count * size), next = 0;
    uint8_t *upper = malloc((size_t)(count * size));
    const int64_t bytes = solve_room(size) - (wild && !draw(20));
    void *memory = malloc((size_t)bytes);
    for (int64_t i = 0; i < count * size; i++) {
        above[i] = entry(wild);
        below[i] = entry(wild);
        parent[i] = (int64_t)draw((uint64_t)(size + (wild && !draw(99))));
        order[i] = (int64_t)draw((uint64_t)(size + (wild && !draw(99)))) - (draw(9) ? 0 : 2);
        upper[i] = (uint8_t)draw(256);
    }
    for (int64_t m = 0; m < count; m++) {
        group[m] = (int64_t)draw((uint64_t)(groups + (wild && !draw(99))));
        if (draw(2)) order[m * size] = -2;
        for (int64_t z = 0; order[m * size] >= 0 && z < size; z++) {
            if (!wild) order[m * size + z] = z;
        }
    }
    for (int64_t i = 0; i < groups * size * size; i++) limits[i] = odd(wild ? 3 : 30);
    int status;
    do {
        status = solve(count, size, groups, above, below, limits, group, parent, upper, order,
                       values, slope, high, low, memory, bytes, &next, some_work());
    } while (status == MORE);
    for (int64_t m = 0; status == DONE && m < count; m++) {
        if (isnan(values[m])) abort();
    }
    ended[status + 4]++;
    void *all[] = {above, below, limits, values, slope, group, parent,
                   order, high,  low,    upper,  memory};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void try_sweep(int wild) {
    struct stretch given;
    memset(&given, 0, sizeof given);
    const int64_t size = given.size = 1 + (int64_t)draw(5);
    const int64_t nodes = 1 + (int64_t)draw(12);
    given.steps = nodes - 1;
    given.blocks = 1 + (int64_t)draw(3);
    given.pairs = size * (size - 1);
    given.spans = 1 + (int64_t)draw(3);
    given.known = (int64_t)draw((uint64_t)nodes);
    given.to_left = (int64_t)draw(2);
    given.any_start = given.to_left && !draw(3);
    const int64_t rows = given.blocks * given.pairs * size, cells = size * size;
    double *above = numbers(rows), *below = numbers(rows), *margins = numbers(given.spans);
    double *distinguishable = numbers(cells), *start = numbers((given.known + 1) * cells);
    double *levels = numbers(nodes), *result = numbers(nodes * cells);
    int64_t *span = places(given.spans), *x = places(given.pairs), *y = places(given.pairs), m = 0;
    int64_t *block = places(given.spans * nodes);
    uint8_t *possible = malloc((size_t)(nodes * size));
    for (int64_t i = 0; i < rows; i++) {
        above[i] = entry(wild);
        below[i] = entry(wild);
    }
    for (int64_t s = 0; s < given.spans; s++) {
        span[s] = (s ? span[s - 1] : 0) + 1 + (int64_t)draw(3) - (wild && !draw(50));
        margins[s] = odd(9);
    }
    for (int64_t u = 0; u < size; u++) {
        for (int64_t w = 0; w < size; w++) {
            distinguishable[u * size + w] = (double)draw(2);
            if (u == w) continue;
            x[m] = u + (wild && !draw(500));
            y[m++] = w;
        }
    }
    for (int64_t i = 0; i < (given.known + 1) * cells; i++) start[i] = odd(wild ? 4 : 40);
    for (int64_t i = 0; i < nodes; i++) levels[i] = odd(wild ? 9 : 90);
    for (int64_t i = 0; i < nodes * size; i++) possible[i] = draw(6) > 0;
    for (int64_t i = 0; i < given.spans * nodes; i++) {
        block[i] = (int64_t)draw((uint64_t)given.blocks);
        if (wild && !draw(90)) block[i] = draw(2) ? INT64_MAX : -1;
    }
    if (wild && !draw(50)) given.known = draw(2) ? nodes : -1;
    given.above = above, given.below = below, given.span = span, given.margins = margins;
    given.x = x, given.y = y, given.distinguishable = distinguishable;
    given.start = start, given.levels = levels;
    given.possible = possible, given.block = block, given.result = result;
    const int64_t widest = span[given.spans - 1], programs = given.spans * given.pairs;
    int64_t bytes = sweep_room(size, widest, programs);
    bytes = bytes < 0 ? 8 : bytes - (wild && !draw(20));
    void *memory = malloc((size_t)bytes);
    struct place at = {0, 0, 0};
    int status;
    do {
        status = sweep(&given, (int64_t)sizeof given, memory, bytes, &at, some_work());
    } while (status == MORE);
    ended[status + 4]++;
    void *all[] = {above, below, margins, distinguishable, start, levels, result,
                   span,  x,     y,       block, possible, memory};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void try_sweep_two(int wild) {
    const int64_t nodes = 1 + (int64_t)draw(9);
    double p[] = {entry(wild), entry(wild)}, q[] = {entry(wild), entry(wild)}, start[4];
    double *levels = numbers(nodes), *result = numbers(nodes * 4);
    for (int64_t i = 0; i < 4; i++) start[i] = odd(9);
    for (int64_t i = 0; i < nodes; i++) levels[i] = odd(9);
    const struct two_states given = {nodes - 1, p, q, start, levels, result};
    int64_t next = wild && !draw(30) ? (draw(2) ? -1 : nodes + 1) : 0;
    int status;
    do {
        status = sweep_two(&given, (int64_t)sizeof given, &next, some_work() / 20);
    } while (status == MORE);
    ended[status + 4]++;
    free(levels), free(result);
}

static void try_linear(int wild) {
    const int64_t size = (int64_t)draw(9) - (wild && !draw(50)), columns = (int64_t)draw(3);
    const int64_t cells = size < 0 ? 0 : size * size, sides = size < 0 ? 0 : size * columns;
    double *matrix = numbers(cells), *right = numbers(sides), *result = numbers(cells);
    int64_t column = 0;
    for (int64_t i = 0; i < cells; i++) matrix[i] = odd(wild ? 3 : 30);
    for (int64_t i = 0; i < sides; i++) right[i] = odd(wild ? 3 : 30);
    int status = product(1, size, size, size, matrix, matrix, result);
    ended[status + 4]++;
    do {
        status = solve_linear(size, columns, matrix, right, &column, some_work());
    } while (status == MORE);
    ended[status + 4]++;
    free(matrix), free(right), free(result);
}

int main(void) {
    for (int64_t turn = 0; turn < 10000; turn++) {
        try_solve(turn % 2);
        try_sweep(turn % 2);
        try_sweep_two(turn % 2);
        try_linear(turn % 2);
    }
    for (int status = SMALL_ROOM; status <= DONE; status++) printf("%d ", (int)ended[status + 4]);
    return 0;
}
