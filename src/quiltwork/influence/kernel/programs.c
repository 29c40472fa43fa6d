/* One program after the other: from a kept or a starting tree to the best, with its certificate.
 *
 * L(p, q; A) = max { log (p·u)/(q·u) : u > 0, u(z) <= e^A[z,y]·u(y) }; see program.py for what
 * trees are and docs/theory/sweep.md for the proofs. Cost: O(k²) where the tree stays, O(k²) per
 * change of it.
 */

#include "kernel.h"

#define FAR 1e120 /* where products come near what a number can hold, logarithms are taken */

/* Turn the worst of the wrong edges until there is none; p·u and q·u, and whether that is so. */
static int pivot(const struct program *given, struct tree tree, struct room *room, int64_t turns,
                 double *top, double *bottom) {
    const int64_t size = given->size;
    double *p = room->p, *q = room->q, *p_below = room->p_below, *q_below = room->q_below;
    double *inside = room->inside;
    const int64_t *nodes = room->nodes;
    *top = *bottom = 0.0;
    for (int64_t turn = 0; turn <= turns; turn++) {
        order_tree(given, tree, room);
        weigh(given, room, top, bottom);
        memcpy(p_below, p, (size_t)size * sizeof *p);
        memcpy(q_below, q, (size_t)size * sizeof *q);
        double worst = 0.0;
        int64_t node = -1;
        for (int64_t place = size - 1; place > 0; place--) {
            const int64_t z = nodes[place];
            p_below[tree.parent[z]] += p_below[z];
            q_below[tree.parent[z]] += q_below[z];
            const double wrong =
                tree.upper[z] ? q_below[z] - p_below[z] : p_below[z] - q_below[z];
            if (wrong > SIGN * (p_below[z] + q_below[z]) && wrong > worst) {
                worst = wrong;
                node = z;
            }
        }
        if (node < 0) return 1;
        if (turn == turns) break;
        memset(inside, 0, (size_t)size * sizeof *inside);
        inside[node] = 1.0;
        for (int64_t place = 1; place < size; place++) {
            const int64_t z = nodes[place];
            if (inside[tree.parent[z]] > 0) inside[z] = 1.0;
        }
        if (!isfinite(graft_subtree(given, tree, room, node, tree.upper[node]))) {
            *top = *bottom = 0.0;
            return 0;
        }
    }
    return 0;
}

/* Whether what a node has too much of p is nothing beside what the node richest in q has. */
static int spare(const struct program *given, const struct room *room, int64_t node, double excess) {
    const int64_t size = given->size;
    const double *v = room->v, *q = room->q;
    int64_t rich = 0;
    for (int64_t z = 0; z < size; z++) {
        if (q[z] > q[rich]) rich = z;
    }
    const double gap = given->limits[node * size + rich] - v[node] + v[rich];
    return excess * exp(lesser(gap, 700.0)) <= MARGIN / (4 * (double)size) * q[rich];
}

/* From a tree to the best; +inf where none was certified. */
static double improve(const struct program *given, struct tree tree, int feasible,
                      struct room *room) {
    const int64_t size = given->size;
    const double *p = room->p, *q = room->q;
    const int64_t *nodes = room->nodes;
    double top = 0.0, bottom = 0.0, *left = room->left;
    int best = feasible && pivot(given, tree, room, 2 * size, &top, &bottom);
    if (!best) { /* many trees are as good as each other, or this one is none */
        if (!alternating_ascent(given, tree, room)) initial_star(given, tree, room->v);
        room->work += 16 * size * size;
        pivot(given, tree, room, 8 * size + 17, &top, &bottom);
    }
    /* the certificate, from the leaves up */
    const double rounding = 8 * (double)(size + 4) * 0x1p-53;
    int holds = bottom > 0 && top > 0;
    for (int64_t z = 0; z < size; z++) {
        left[z] = p[z] * (1 + rounding) - q[z] * ((1 + MARGIN / 2) * (1 - rounding));
    }
    for (int64_t place = size - 1; place >= 0; place--) {
        const int64_t z = nodes[place];
        if (place > 0 && tree.upper[z]) {
            left[tree.parent[z]] += greater(left[z], 0.0);
        } else {
            if (left[z] > 0) holds = holds && spare(given, room, z, left[z]);
            if (place > 0) left[tree.parent[z]] += lesser(left[z], 0.0);
        }
    }
    const double value = log(top / bottom) + MARGIN;
    return holds && !isnan(value) ? value : INFINITY;
}

/* The bound by a kept tree, if it is still the best and all states are reached; else NaN.
 *
 * The same sums as in `improve`, in one pass and with `ratio` e^limit in place of logarithms:
 * mostly trees stay, and then this is all there is. */
static double by_kept_tree(const struct program *given, const double *ratio, struct tree tree,
                           const int64_t *order, struct room *room) {
    const int64_t size = given->size;
    const double *above = given->above, *below = given->below;
    double *u = room->v, *p = room->p, *q = room->q, *left = room->left;
    double *p_below = room->p_below, *q_below = room->q_below;
    double least = 1.0, most = 1.0, top = 0.0, bottom = 0.0;
    memset(u, 0, (size_t)size * sizeof *u);
    u[order[0]] = 1.0;
    for (int64_t place = 1; place < size; place++) {
        const int64_t z = order[place], y = tree.parent[z];
        u[z] = tree.upper[z] ? u[y] * ratio[z * size + y] : u[y] / ratio[y * size + z];
        least = lesser(least, u[z]);
        most = greater(most, u[z]);
    }
    room->work += 32 + size * size;
    if (!(least > 1 / FAR && most < FAR)) return NAN;
    for (int64_t z = 0; z < size; z++) {
        p[z] = above[z] * u[z];
        q[z] = below[z] * u[z];
        top += p[z];
        bottom += q[z];
        if (above[z] == 0 && below[z] == 0) return NAN;
    }
    if (!(top > 0 && bottom > 0)) return NAN;
    const double rounding = 8 * (double)(size + 4) * 0x1p-53;
    const double p_raised = (1 + rounding) / top;
    const double q_raised = (1 + MARGIN / 2) * (1 - rounding) / bottom;
    for (int64_t z = 0; z < size; z++) {
        p_below[z] = p[z] / top;
        q_below[z] = q[z] / bottom;
        left[z] = p[z] * p_raised - q[z] * q_raised;
    }
    for (int64_t place = size - 1; place > 0; place--) {
        const int64_t z = order[place], y = tree.parent[z];
        const double one = p_below[z], other = q_below[z], rest = left[z];
        const int high = tree.upper[z];
        const double wrong = high ? other - one : one - other;
        if (wrong > SIGN * (one + other) || (rest > 0 && !high)) return NAN;
        p_below[y] += one;
        q_below[y] += other;
        left[y] += high ? greater(rest, 0.0) : rest;
    }
    if (left[order[0]] > 0) return NAN;
    for (int64_t z = 0; z < size; z++) {
        const double low = u[z] * (1 - FEASIBLE), *row = ratio + z * size;
        int64_t crossed = 0;
        for (int64_t y = 0; y < size; y++) crossed += low > u[y] * row[y];
        if (crossed > 0) return NAN;
    }
    return log(top / bottom) + MARGIN;
}

/* A program all of whose states are reached, from its kept tree, one beside it, or a star. */
static double on_all_states(const struct program *given, struct kept kept, int64_t row,
                            int64_t beside, struct room *room) {
    const int64_t size = given->size, back[] = {1, size - 1};
    const struct tree tree = {kept.parent + row * size, kept.upper + row * size};
    int64_t *order = kept.order + row * size;
    int feasible = order[0] > -2 && keeps_limits(given, tree, room);
    double best = -1.0;
    for (int i = 0; i < 2; i++) { /* p or q is the same there, where rows are those of all pairs */
        const int64_t other = (row - back[i]) * size;
        if (feasible || back[i] > beside || kept.order[other] < 0) continue;
        const struct tree near = {kept.parent + other, kept.upper + other};
        double top, bottom;
        order_tree(given, near, room);
        weigh(given, room, &top, &bottom);
        if (top / bottom > best) {
            best = top / bottom;
            memcpy(tree.parent, near.parent, (size_t)size * sizeof *tree.parent);
            memcpy(tree.upper, near.upper, (size_t)size);
        }
    }
    feasible = feasible || (best >= 0 && keeps_limits(given, tree, room));
    if (order[0] == -2 && !feasible) initial_star(given, tree, room->v);
    const double value = improve(given, tree, feasible, room);
    for (int64_t z = 0; z < size; z++) {
        room->flow[z] = room->p_below[z] - room->q_below[z];
        order[z] = room->nodes[z];
    }
    if (isinf(value)) order[0] = -1;
    return value;
}

/* A program on the states that its rows reach: limits are closed, so that no other matters. */
static double on_reached_states(const struct program *given, struct kept kept, int64_t row,
                                int64_t beside, struct room *room) {
    const int64_t size = given->size;
    int64_t *parent = kept.parent + row * size, *order = kept.order + row * size, found = 0;
    uint8_t *upper = kept.upper + row * size;
    if (beside > 0 && order[0] == -2 && order[-size] > -2) {
        memcpy(parent, parent - size, (size_t)size * sizeof *parent);
        memcpy(upper, upper - size, (size_t)size);
        order[0] = -1;
    }
    for (int64_t z = 0; z < size; z++) {
        room->place[z] = -1;
        room->flow[z] = 0.0;
        if (given->above[z] > 0 || given->below[z] > 0) {
            room->reached[found] = z;
            room->place[z] = found++;
        }
    }
    if (found == 0) return INFINITY;
    const struct tree tree = {room->branch, room->flags};
    const struct program part = {found, room->rows, room->rows + found, room->limits};
    int planted = order[0] > -2;
    for (int64_t i = 0; i < found; i++) {
        const int64_t z = room->reached[i];
        room->rows[i] = given->above[z];
        room->rows[found + i] = given->below[z];
        tree.parent[i] = room->place[parent[z]];
        tree.upper[i] = upper[z];
        planted = planted && tree.parent[i] >= 0;
        for (int64_t j = 0; j < found; j++) {
            room->limits[i * found + j] = given->limits[z * size + room->reached[j]];
        }
    }
    room->work += found * found;
    if (!planted) initial_star(&part, tree, room->v);
    const int feasible = planted && keeps_limits(&part, tree, room);
    const double value = improve(&part, tree, feasible, room);
    for (int64_t z = 0; z < size; z++) parent[z] = z;
    for (int64_t i = 0; i < found; i++) {
        const int64_t z = room->reached[i];
        parent[z] = room->reached[tree.parent[i]];
        upper[z] = tree.upper[i];
        room->flow[z] = room->p_below[i] - room->q_below[i];
    }
    order[0] = -1;
    return value;
}

/* One program from the kept tree of a row. Where it breaks a limit, one of the `beside` rows before
 * is begun with, which was found under the same limits. `flow` gets what each node and those below
 * it have of p less of q. */
double best_tree(const struct program *given, const double *ratio, struct kept kept, int64_t row,
                 int64_t beside, struct room *room) {
    const int64_t size = given->size, *order = kept.order + row * size;
    int64_t found = 0;
    if (order[0] >= 0) {
        const struct tree tree = {kept.parent + row * size, kept.upper + row * size};
        const double value = by_kept_tree(given, ratio, tree, order, room);
        if (!isnan(value)) {
            for (int64_t z = 0; z < size; z++) {
                room->flow[z] = room->p_below[z] - room->q_below[z];
            }
            return value;
        }
    }
    for (int64_t z = 0; z < size; z++) found += given->above[z] > 0 || given->below[z] > 0;
    return found == size ? on_all_states(given, kept, row, beside, room)
                         : on_reached_states(given, kept, row, beside, room);
}

/* How many bytes of room one program takes. */
int64_t program_room(int64_t size) {
    return (size * size + 10 * size + 6 * size) * 8 + size + 8;
}

/* Divide memory into the parts of a room; where the rest begins. */
char *lay_out_program(struct room *room, int64_t size, char *memory) {
    double *numbers = (double *)(void *)memory;
    double **parts[] = {&room->v,       &room->p,    &room->q,      &room->p_below,
                        &room->q_below, &room->left, &room->inside, &room->flow};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++, numbers += size) *parts[i] = numbers;
    room->rows = numbers;
    room->limits = numbers += 2 * size;
    int64_t *places = (int64_t *)(void *)(numbers + size * size);
    int64_t **indices[] = {&room->nodes,   &room->child, &room->sibling,
                           &room->reached, &room->place, &room->branch};
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++, places += size) {
        *indices[i] = places;
    }
    room->flags = (uint8_t *)places;
    room->work = 0;
    return memory + program_room(size) / 8 * 8;
}

/* Whether every entry is a finite number and none is negative. */
int are_rows(const double *entries, int64_t count) {
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++) bad += !(entries[i] >= 0 && entries[i] <= DBL_MAX);
    return bad == 0;
}

/* Whether kept trees name states only. */
int are_trees(struct kept kept, int64_t count, int64_t size) {
    for (int64_t m = 0; m < count; m++) {
        const int64_t *parent = kept.parent + m * size, *order = kept.order + m * size;
        if (order[0] < -2 || order[0] >= size) return 0;
        for (int64_t z = 0; z < size; z++) {
            if (parent[z] < 0 || parent[z] >= size) return 0;
            if (order[0] >= 0 && (order[z] < 0 || order[z] >= size)) return 0;
        }
    }
    return 1;
}

static int APART solve_parts(int64_t count, int64_t size, const double *above, const double *below,
                             const double *limits, const int64_t *group, struct kept kept,
                             double *values, double *slope, int64_t *high, int64_t *low,
                             double *ratio, struct room *room, int64_t *next, int64_t most) {
    int64_t beside = 0;
    for (int64_t m = *next; m > 0 && group[m - 1] == group[*next]; m--) beside++;
    for (int64_t m = *next; m < count; m++) {
        const double *closed = limits + group[m] * size * size;
        if (m > *next) beside = group[m - 1] == group[m] ? beside + 1 : 0;
        if (m == *next || beside == 0) {
            for (int64_t i = 0; i < size * size; i++) ratio[i] = exp(closed[i]);
            room->work += 8 * size * size;
        }
        const struct program given = {size, above + m * size, below + m * size, closed};
        values[m] = best_tree(&given, ratio, kept, m, beside, room);
        for (int64_t z = 0; z < size; z++) {
            const int64_t at = m * size + z, parent = kept.parent[at];
            const int upper = kept.upper[at];
            const double change = upper ? room->flow[z] : -room->flow[z];
            slope[at] = parent == z ? 0.0 : greater(change, 0.0);
            high[at] = upper ? z : parent;
            low[at] = upper ? parent : z;
        }
        if (room->work > most && m + 1 < count) {
            *next = m + 1;
            return MORE;
        }
    }
    *next = count;
    return DONE;
}

/* How many bytes of room `solve` needs, or a status. */
EXPORTED int64_t solve_room(int64_t size) {
    if (size < 1 || size > MOST_STATES) return BAD_SIZES;
    return program_room(size) + size * size * 8;
}

/* Solve every pair of rows under the closed limits of its group, from the tree kept for it; go on
 * at program *next. `slope` belongs to the limit between states `high` and `low`. */
EXPORTED int solve(int64_t count, int64_t size, int64_t groups, const double *above,
                   const double *below, const double *limits, const int64_t *group, int64_t *parent,
                   uint8_t *upper, int64_t *order, double *values, double *slope, int64_t *high,
                   int64_t *low, void *memory, int64_t bytes, int64_t *next, int64_t most) {
    const struct kept kept = {parent, order, upper};
    if (size < 1 || size > MOST_STATES || count < 0 || count > MOST_CELLS / (size * size)) {
        return BAD_SIZES;
    }
    if (*next < 0 || *next > count) return BAD_SIZES;
    for (int64_t m = *next; m < count; m++) {
        if (group[m] < 0 || group[m] >= groups) return BAD_SIZES;
    }
    if (memory == NULL || bytes < solve_room(size)) return SMALL_ROOM;
    if (!are_rows(above, count * size) || !are_rows(below, count * size)) return BAD_ROWS;
    if (!are_trees(kept, count, size)) return BAD_TREES;
    if (*next == count) return DONE;
    const environment before = plain_environment();
    struct room room;
    double *ratio = (double *)memory;
    lay_out_program(&room, size, (char *)(ratio + size * size));
    const int status = solve_parts(count, size, above, below, limits, group, kept, values, slope,
                                   high, low, ratio, &room, next, most);
    restore_environment(before);
    return status;
}
