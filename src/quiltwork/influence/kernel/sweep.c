/* A stretch of nodes, swept inwards one node after the other; see step.py.
 *
 * Cost: a node takes a program for every pair of states and span: O(k⁴) while trees stay.
 */

#include "kernel.h"

/* The first known + 1 nodes have the bounds start[0..known]; from there on bounds are computed, up
 * to the node after `steps` steps. levels[j] and possible[j] belong to the node after j steps, and
 * block[s, j] says which rows lead to it by span s. */
struct stretch {
    int64_t size, blocks, pairs, spans, steps, known, to_left, any_start;
    const double *above, *below; /* (blocks, pairs, k) */
    const int64_t *span;         /* how many nodes each takes, ascending */
    const double *margins;       /* what each adds */
    const int64_t *x, *y;        /* the pairs */
    const double *distinguishable; /* (k, k) 1 where a release moves between two states, else 0 */
    const double *start;         /* (known + 1, k, k) */
    const double *levels;        /* (steps + 1) */
    const uint8_t *possible;     /* (steps + 1, k) */
    const int64_t *block;        /* (spans, steps + 1) */
    double *result;              /* (steps + 1, k, k) */
};

/* Where a sweep is, kept by its caller between parts. */
struct place {
    int64_t step, span, pair;
};

/* What a sweep works with, kept by its caller between parts. */
struct bench {
    double *ring;                          /* the bounds of the last nodes */
    double *now, *closed, *limits, *ratio; /* of the step that is taken */
    double *p, *q;
    struct kept kept;
    struct room room;
};

/* Both trees there are with two states: the second weighs e^A[1,0] or e^-A[0,1]. */
static double by_two_trees(const double *p, const double *q, double high, double low) {
    const double weights[] = {high, low};
    double best = 0.0;
    for (int i = 0; i < 2; i++) {
        const double top = p[0] + p[1] * weights[i], bottom = q[0] + q[1] * weights[i];
        if (top > 0) best = greater(best, bottom > 0 ? top / bottom : INFINITY);
    }
    return log(best) + 0x1p-48;
}

/* Columns weighted in any way, as square roots: see AnyStartProgram in sweep/program.py. */
static double from_any_start(int64_t size, const double *above, const double *below,
                             const double *fading, const double *spread) {
    const double root = sqrt(SMALLEST_ENTRY);
    double most = 0.0;
    for (int64_t z = 0; z < size; z++) {
        if (above[z] == 0) continue;
        const double top = greater(above[z], root), least = below[z] * (1 - 0x1p-50);
        for (int64_t y = 0; y < size; y++) {
            if (y == z || below[y] == 0) continue;
            double b = 0.0;
            if (above[y] >= root && below[z] >= root) {
                b = lesser(above[y] * least / (top * greater(below[y], root)), 1.0);
            }
            const double a = fading[z * size + y], gain = spread[z * size + y] * (1 - b);
            most = greater(most, a + b > 0 ? gain / (a + b) : INFINITY);
        }
    }
    return 2 * log1p(most) * (1 + 0x1p-46) + 0x1p-48;
}

/* A bound by the largest limit and by single entries alone. */
static double without_trees(int64_t size, const double *above, const double *below,
                            const double *closed) {
    double most = 0.0, p_sum = 0.0, q_sum = 0.0, ratio = 0.0;
    for (int64_t z = 0; z < size; z++) {
        p_sum += above[z];
        q_sum += below[z];
        if (above[z] > 0) ratio = greater(ratio, below[z] > 0 ? above[z] / below[z] : INFINITY);
        if (above[z] > 0 || below[z] > 0) {
            for (int64_t y = 0; y < size; y++) {
                if ((above[y] > 0 || below[y] > 0) && y != z) {
                    most = greater(most, closed[z * size + y]);
                }
            }
        }
    }
    const double limited =
        q_sum > 0 && p_sum > 0 ? most + log(p_sum / q_sum) + 0x1p-48 : INFINITY;
    if (ratio <= 0) return limited;
    const double single = log(ratio);
    return lesser(limited, single + fabs(single) * 0x1p-50 + 0x1p-50);
}

/* Limits from the bounds beyond and the level there, closed (Floyd-Warshall); those of the program,
 * a little higher, with their exponentials. Whether some are too large for it. */
static int set_limits(const struct stretch *given, struct bench *bench, const double *beyond,
                      double level) {
    const int64_t size = given->size, trees = size > 2 && !given->any_start;
    double *closed = bench->closed, *limits = bench->limits;
    int large = 0;
    for (int64_t u = 0; u < size; u++) {
        for (int64_t w = 0; w < size; w++) {
            const int64_t at = u * size + w;
            const double limit = beyond[at] + level * given->distinguishable[at];
            closed[at] = u == w ? 0.0 : isnan(limit) ? INFINITY : limit;
        }
    }
    for (int64_t z = 0; trees && z < size; z++) {
        for (int64_t u = 0; u < size; u++) {
            const double first = closed[u * size + z];
            double *row = closed + u * size;
            const double *onward = closed + z * size;
            for (int64_t w = 0; w < size; w++) row[w] = lesser(row[w], first + onward[w]);
        }
    }
    for (int64_t at = 0; at < size * size; at++) {
        const double limit = lesser(closed[at], LARGEST_LIMIT);
        large = large || closed[at] > LARGEST_LIMIT;
        limits[at] = limit + SLACK * (1 + fabs(limit));
        if (given->any_start) {
            limits[at] = exp(-closed[at] / 2);
            closed[at] = -expm1(-closed[at] / 2);
        } else if (trees) {
            bench->ratio[at] = exp(limits[at]);
        }
    }
    bench->room.work += 16 * size * size + (trees ? size * size * size : 0);
    return large;
}

/* Whether a limit between two states that the rows reach is too large. */
static int reaches_large(int64_t size, const double *p, const double *q, const double *closed) {
    for (int64_t u = 0; u < size; u++) {
        for (int64_t w = 0; w < size; w++) {
            if ((p[u] > 0 || q[u] > 0) && (p[w] > 0 || q[w] > 0) &&
                closed[u * size + w] > LARGEST_LIMIT) {
                return 1;
            }
        }
    }
    return 0;
}

/* The bound of one pair by one span. */
static double bound_of_pair(const struct stretch *given, struct bench *bench, int64_t row,
                            int64_t pair, int large, double high, double low) {
    const int64_t size = given->size;
    const double *p = bench->p, *q = bench->q, *closed = bench->closed;
    double value;
    bench->room.work += 32 + size * size;
    if (given->any_start) return from_any_start(size, p, q, bench->limits, closed);
    if (size == 2) {
        value = by_two_trees(p, q, high, low);
    } else {
        const struct program program = {size, p, q, bench->limits};
        value = best_tree(&program, bench->ratio, bench->kept, row, pair, &bench->room);
    }
    if (large || value == INFINITY) {
        const double bound = without_trees(size, p, q, closed);
        if (value == INFINITY || reaches_large(size, p, q, closed)) value = bound;
    }
    return value;
}

/* One step of a stretch by all spans, from the span and the pair where it was left; MORE where it
 * is left again. */
static int step_inwards(const struct stretch *given, struct bench *bench, struct place *at,
                        int64_t most) {
    const int64_t size = given->size, cells = size * size, j = at->step;
    const int64_t widest = given->span[given->spans - 1];
    const double *levels = given->levels;
    const uint8_t *possible = given->possible;
    if (at->span == 0 && at->pair == 0) {
        for (int64_t i = 0; i < cells; i++) bench->now[i] = INFINITY;
    }
    for (; at->span < given->spans && given->span[at->span] <= j; at->span++, at->pair = 0) {
        const int64_t s = at->span, span = given->span[s];
        double gap = given->margins[s];
        for (int64_t i = 1; i < span; i++) gap += levels[j - i];
        const double *beyond = bench->ring + (j - span) % widest * cells;
        const int large = set_limits(given, bench, beyond, levels[j - span]);
        const double high = size == 2 ? exp(bench->limits[2]) : 1.0;
        const double low = size == 2 ? exp(-bench->limits[1]) : 1.0;
        const int64_t rows = given->block[s * (given->steps + 1) + j] * given->pairs;
        for (int64_t m = at->pair; m < given->pairs; m++) {
            const int64_t x = given->x[m], y = given->y[m];
            if (given->to_left && !(possible[j * size + x] && possible[j * size + y])) continue;
            for (int64_t z = 0; z < size; z++) {
                const int reached = !given->to_left || possible[(j - span) * size + z];
                bench->p[z] = reached ? given->above[(rows + m) * size + z] : 0.0;
                bench->q[z] = reached ? given->below[(rows + m) * size + z] : 0.0;
            }
            double *bound = bench->now + x * size + y;
            const int64_t row = s * given->pairs + m;
            *bound = lesser(*bound, bound_of_pair(given, bench, row, m, large, high, low) + gap);
            if (bench->room.work > most && m + 1 < given->pairs) {
                at->pair = m + 1;
                return MORE;
            }
        }
    }
    for (int64_t z = 0; z < size; z++) bench->now[z * size + z] = 0.0;
    return DONE;
}

static int APART sweep_parts(const struct stretch *given, struct bench *bench, struct place *at,
                             int64_t most) {
    const int64_t cells = given->size * given->size, widest = given->span[given->spans - 1];
    const size_t bytes = (size_t)cells * sizeof(double);
    if (at->step == 0) {
        for (int64_t row = 0; row < given->spans * given->pairs; row++) {
            bench->kept.order[row * given->size] = -2;
        }
    }
    for (; at->step <= given->steps; at->step++, at->span = at->pair = 0) {
        if (at->step <= given->known) {
            memcpy(bench->now, given->start + at->step * cells, bytes);
        } else if (step_inwards(given, bench, at, most) == MORE) {
            return MORE;
        }
        memcpy(bench->ring + at->step % widest * cells, bench->now, bytes);
        memcpy(given->result + at->step * cells, bench->now, bytes);
        bench->room.work += 32 + cells;
        if (bench->room.work > most) {
            at->step++;
            at->span = at->pair = 0;
            return MORE;
        }
    }
    return DONE;
}

/* How many bytes of room `sweep` needs, or a status. */
EXPORTED int64_t sweep_room(int64_t size, int64_t widest, int64_t programs) {
    if (size < 1 || size > MOST_STATES || widest < 1 || programs < 0) return BAD_SIZES;
    if (widest > MOST_CELLS / (size * size) || programs > MOST_CELLS / size) return BAD_SIZES;
    const int64_t numbers = (widest + 4) * size * size + 2 * size + 2 * programs * size;
    return numbers * 8 + program_room(size) + programs * size + 8;
}

static void lay_out(struct bench *bench, const struct stretch *given, char *memory) {
    const int64_t size = given->size, cells = size * size, programs = given->spans * given->pairs;
    double *numbers = (double *)(void *)memory;
    bench->ring = numbers;
    numbers += given->span[given->spans - 1] * cells;
    double **parts[] = {&bench->now, &bench->closed, &bench->limits, &bench->ratio};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++, numbers += cells) *parts[i] = numbers;
    bench->p = numbers;
    bench->q = numbers + size;
    bench->kept.parent = (int64_t *)(void *)(numbers + 2 * size);
    bench->kept.order = bench->kept.parent + programs * size;
    char *rest = (char *)(bench->kept.order + programs * size);
    bench->kept.upper = (uint8_t *)lay_out_program(&bench->room, size, rest);
}

/* Whether all sizes, pairs, spans, blocks and places are within their arrays. */
static int fits(const struct stretch *given, const struct place *at) {
    const int64_t size = given->size;
    if (size < 1 || size > MOST_STATES || given->blocks < 1 || given->blocks > MOST_CELLS) return 0;
    if (given->pairs < 0 || given->pairs > size * size) return 0;
    if (given->spans < 1 || given->spans > 64 || given->steps < 0) return 0;
    if (given->known < 0 || given->known > given->steps) return 0;
    for (int64_t s = 0; s < given->spans; s++) {
        if (given->span[s] < 1 || (s > 0 && given->span[s] <= given->span[s - 1])) return 0;
        for (int64_t j = 0; j <= given->steps; j++) {
            const int64_t block = given->block[s * (given->steps + 1) + j];
            if (block < 0 || block >= given->blocks) return 0;
        }
    }
    for (int64_t m = 0; m < given->pairs; m++) {
        if (given->x[m] < 0 || given->x[m] >= size || given->y[m] < 0 || given->y[m] >= size) {
            return 0;
        }
    }
    if (at->step < 0 || at->span < 0 || at->pair < 0) return 0;
    return at->span <= given->spans && at->pair <= given->pairs && at->step <= given->steps + 1;
}

/* Sweep the stretch, or go on at a place with the room that was left; `size_of_given` is that of
 * the caller's structure. */
EXPORTED int sweep(const struct stretch *given, int64_t size_of_given, void *memory,
                   int64_t bytes, struct place *at, int64_t most) {
    if (size_of_given != (int64_t)sizeof *given || !fits(given, at)) return BAD_SIZES;
    const int64_t programs = given->spans * given->pairs, rows = given->blocks * given->pairs;
    const int64_t needed = sweep_room(given->size, given->span[given->spans - 1], programs);
    if (needed < 0) return BAD_SIZES;
    if (memory == NULL || bytes < needed) return SMALL_ROOM;
    if (!are_rows(given->above, rows * given->size) || !are_rows(given->below, rows * given->size)) {
        return BAD_ROWS;
    }
    struct bench bench;
    lay_out(&bench, given, memory);
    if (at->step == 0 && at->span == 0 && at->pair == 0) {
        memset(memory, 0, (size_t)needed);
    }
    if (!are_trees(bench.kept, programs, given->size)) return BAD_TREES;
    const environment before = plain_environment();
    const int status = sweep_parts(given, &bench, at, most);
    restore_environment(before);
    return status;
}

/* Two states whose steps are all likely, with one row of matrices and ratios in place of
 * logarithms. */
struct two_states {
    int64_t steps;
    const double *p, *q;  /* the two rows */
    const double *start;  /* (2, 2), exponentials as all here */
    const double *levels; /* (steps + 1) */
    double *result;       /* (steps + 1, 2, 2) */
};

static int APART sweep_two_parts(const struct two_states *given, int64_t *next, int64_t most) {
    const double *p = given->p, *q = given->q, up = 1 + 0x1p-48;
    const int64_t from = *next;
    const double *last = from > 0 ? given->result + (from - 1) * 4 : given->start;
    double more = last[1], less = last[2];
    int64_t work = 0;
    for (int64_t j = from; j <= given->steps; j++) {
        if (j > 0) {
            const double level = given->levels[j - 1] * up;
            const double high = level * less, low = 1 / (level * more);
            const double one = (p[0] + p[1] * high) / (q[0] + q[1] * high);
            const double other = (p[0] + p[1] * low) / (q[0] + q[1] * low);
            more = greater(one, other) * up;
            less = up / lesser(one, other);
        }
        double *cell = given->result + j * 4;
        cell[0] = cell[3] = 1.0;
        cell[1] = more;
        cell[2] = less;
        if ((work += 16) > most) {
            *next = j + 1;
            return MORE;
        }
    }
    return DONE;
}

/* The same as `sweep` for two such states: a step is t = (p0 + p1·w)/(q0 + q1·w) at the two ends of
 * w = u(1)/u(0), and the bounds are the largest t and the inverse of the least. `next` is the step
 * to go on with, 0 at first. */
EXPORTED int sweep_two(const struct two_states *given, int64_t size_of_given, int64_t *next,
                       int64_t most) {
    if (size_of_given != (int64_t)sizeof *given || given->steps < 0) return BAD_SIZES;
    if (*next < 0 || *next > given->steps + 1) return BAD_SIZES;
    if (!are_rows(given->p, 2) || !are_rows(given->q, 2)) return BAD_ROWS;
    const environment before = plain_environment();
    const int status = sweep_two_parts(given, next, most);
    restore_environment(before);
    return status;
}
