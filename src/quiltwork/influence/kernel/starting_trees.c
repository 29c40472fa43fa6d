/* Trees that keep all limits, for programs.c to begin with. */

#include "kernel.h"

#define PASSES 8

/* The best star: all nodes at their upper, or all at their lower limit over one. */
void initial_star(const struct program *given, struct tree tree, double *v) {
    const int64_t size = given->size;
    const double *above = given->above, *below = given->below, *a = given->limits;
    double best = -1.0;
    for (int64_t root = 0; root < size; root++) {
        for (int side = 0; side < 2; side++) {
            double most = -INFINITY, top = 0.0, bottom = 0.0;
            for (int64_t z = 0; z < size; z++) {
                v[z] = z == root ? 0.0 : side == 0 ? a[z * size + root] : -a[root * size + z];
                if ((above[z] > 0 || below[z] > 0) && v[z] > most) most = v[z];
            }
            for (int64_t z = 0; z < size; z++) {
                if (above[z] > 0 || below[z] > 0) {
                    const double weight = exp(v[z] - most);
                    top += above[z] * weight;
                    bottom += below[z] * weight;
                }
            }
            double ratio = top > 0 ? INFINITY : 0.0;
            if (bottom > 0) ratio = top / bottom;
            if (ratio > best) {
                best = ratio;
                for (int64_t z = 0; z < size; z++) {
                    tree.parent[z] = root;
                    tree.upper[z] = side == 0;
                }
            }
        }
    }
    if (best < 0) { /* no ratio is a number */
        for (int64_t z = 0; z < size; z++) tree.parent[z] = tree.upper[z] = 0;
    }
}

/* List the nodes from the root outwards, with their log u; return how many are connected. */
int64_t order_tree(const struct program *given, struct tree tree, struct room *room) {
    const int64_t size = given->size;
    const double *a = given->limits;
    double *v = room->v;
    int64_t *nodes = room->nodes, *child = room->child, *sibling = room->sibling, found = 0;
    for (int64_t z = 0; z < size; z++) {
        child[z] = -1;
        nodes[z] = z;
        v[z] = 0.0;
    }
    for (int64_t z = size - 1; z >= 0; z--) {
        const int64_t parent = tree.parent[z];
        if (parent == z) {
            nodes[0] = z;
            found = 1;
        } else {
            sibling[z] = child[parent];
            child[parent] = z;
        }
    }
    for (int64_t place = 0; place < found; place++) {
        const int64_t z = nodes[place];
        for (int64_t y = child[z]; y >= 0; y = sibling[y]) {
            v[y] = tree.upper[y] ? v[z] + a[y * size + z] : v[z] - a[z * size + y];
            nodes[found++] = y;
        }
    }
    room->work += 4 * size;
    return found;
}

/* Move the nodes `inside` until another limit is met, and attach them there; how far they moved. */
double graft_subtree(const struct program *given, struct tree tree, struct room *room, int64_t node,
                     int down) {
    const int64_t size = given->size;
    const double *a = given->limits, *v = room->v, *inside = room->inside;
    double least = INFINITY;
    int64_t joint = -1, outside = -1;
    for (int64_t z = 0; z < size; z++) {
        if (!(inside[z] > 0)) continue;
        for (int64_t y = 0; y < size; y++) {
            if (inside[y] != 0) continue;
            const double space =
                down ? a[y * size + z] + v[z] - v[y] : a[z * size + y] - v[z] + v[y];
            if (space < least) {
                least = space;
                joint = z;
                outside = y;
            }
        }
    }
    room->work += size * size;
    if (joint < 0) return INFINITY; /* no limit is a number */
    int64_t at = joint, above_it = outside;
    uint8_t at_upper = !down;
    for (int64_t turn = 0; turn < size; turn++) {
        const int64_t old_parent = tree.parent[at];
        const uint8_t old_upper = tree.upper[at];
        tree.parent[at] = above_it;
        tree.upper[at] = at_upper;
        if (at == node) break;
        above_it = at;
        at_upper = !old_upper;
        at = old_parent;
    }
    return down ? -least : least;
}

/* The shares of p·u and q·u that each node has, and both sums over e^(largest v). */
void weigh(const struct program *given, struct room *room, double *top, double *bottom) {
    const int64_t size = given->size;
    const double *above = given->above, *below = given->below, *v = room->v;
    double *p = room->p, *q = room->q, most = -INFINITY, p_sum = 0.0, q_sum = 0.0;
    for (int64_t z = 0; z < size; z++) {
        if ((above[z] > 0 || below[z] > 0) && v[z] > most) most = v[z];
    }
    for (int64_t z = 0; z < size; z++) {
        p[z] = q[z] = 0.0;
        if (above[z] > 0 || below[z] > 0) {
            const double weight = exp(v[z] - most);
            p[z] = above[z] * weight;
            q[z] = below[z] * weight;
            p_sum += p[z];
            q_sum += q[z];
        }
    }
    for (int64_t z = 0; z < size; z++) {
        p[z] = p_sum > 0 ? p[z] / p_sum : 0.0;
        q[z] = q_sum > 0 ? q[z] / q_sum : 0.0;
    }
    room->work += 8 * size;
    *top = p_sum;
    *bottom = q_sum;
}

/* Give every connected part one root, and a name; how many parts there are. */
static int64_t cut_circles(int64_t size, struct tree tree, int64_t *part) {
    int64_t parts = 0;
    for (int64_t z = 0; z < size; z++) part[z] = -1;
    for (int64_t start = 0; start < size; start++) {
        int64_t z = start, name;
        while (part[z] == -1) {
            part[z] = -2;
            z = tree.parent[z];
        }
        if (part[z] == -2) {
            tree.parent[z] = z;
            name = z;
            parts++;
        } else {
            name = part[z];
        }
        for (z = start; part[z] == -2; z = tree.parent[z]) part[z] = name;
    }
    return parts;
}

/* From any v to a tree close to the best: all nodes of p as high as those of q let them be, those
 * of q as low as possible, while that helps; then connected parts are joined. 0 where p
 * and q do not differ. */
int alternating_ascent(const struct program *given, struct tree tree, struct room *room) {
    const int64_t size = given->size;
    const double *a = given->limits;
    double *v = room->v, *p = room->p, *q = room->q, *inside = room->inside;
    double *before = room->p_below, last = -INFINITY, top, bottom;
    int64_t *part = room->child;
    memcpy(before, v, (size_t)size * sizeof *v);
    for (int64_t z = 0; z < size; z++) { /* the largest feasible v below the given one */
        for (int64_t y = 0; y < size; y++) {
            if (y != z) v[z] = lesser(v[z], before[y] + a[z * size + y]);
        }
    }
    for (int pass = 0; pass < PASSES; pass++) {
        weigh(given, room, &top, &bottom);
        if (!(top > 0 && bottom > 0) || top / bottom <= last * (1 + 0x1p-20)) break;
        last = top / bottom;
        int64_t risers = 0;
        for (int64_t z = 0; z < size; z++) {
            inside[z] = p[z] > q[z] ? 1.0 : 0.0;
            risers += p[z] > q[z];
        }
        if (risers == 0) return 0;
        for (int64_t z = 0; z < size; z++) {
            if (!(inside[z] > 0)) continue;
            double best = INFINITY;
            int64_t at = z;
            for (int64_t y = 0; y < size; y++) {
                if (inside[y] == 0 && a[z * size + y] + v[y] < best) {
                    best = a[z * size + y] + v[y];
                    at = y;
                }
            }
            v[z] = best;
            tree.parent[z] = at;
            tree.upper[z] = 1;
        }
        for (int64_t y = 0; y < size; y++) {
            if (inside[y] != 0) continue;
            double best = -INFINITY;
            int64_t at = y;
            for (int64_t z = 0; z < size; z++) {
                if (inside[z] > 0 && v[z] - a[z * size + y] > best) {
                    best = v[z] - a[z * size + y];
                    at = z;
                }
            }
            v[y] = best;
            tree.parent[y] = at;
            tree.upper[y] = 0;
        }
        room->work += 2 * size * size;
    }
    if (last == -INFINITY) return 0;
    /* every node points at another: a circle in each part is cut */
    int64_t parts = cut_circles(size, tree, part);
    for (int64_t root = 0; root < size && parts > 1; root++) {
        if (tree.parent[root] != root) continue;
        double gain = 0.0;
        const int64_t name = part[root];
        weigh(given, room, &top, &bottom);
        for (int64_t z = 0; z < size; z++) {
            inside[z] = part[z] == name ? 1.0 : 0.0;
            gain += (p[z] - q[z]) * inside[z];
        }
        const double moved = graft_subtree(given, tree, room, root, gain < 0);
        if (!isfinite(moved)) return 0;
        int64_t at = root;
        for (int64_t turn = 0; turn < size && inside[at] > 0; turn++) at = tree.parent[at];
        for (int64_t z = 0; z < size; z++) {
            if (inside[z] > 0) {
                v[z] += moved;
                part[z] = part[at];
            }
        }
        parts--;
    }
    return 1;
}

/* Whether the log u of a tree keeps all limits. */
int keeps_limits(const struct program *given, struct tree tree, struct room *room) {
    const int64_t size = given->size;
    const double *a = given->limits, *v = room->v;
    if (order_tree(given, tree, room) < size) return 0;
    for (int64_t z = 0; z < size; z++) {
        const double high = v[z] - FEASIBLE, *row = a + z * size;
        int64_t crossed = 0;
        for (int64_t y = 0; y < size; y++) crossed += high - v[y] > row[y]; /* quicker than to stop */
        if (crossed > 0) return 0;
    }
    room->work += size * size;
    return 1;
}
