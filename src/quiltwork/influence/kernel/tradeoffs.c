/* Trade-off curves on a grid: their composition, one step of the f-sweep, what a node leaks.
 *
 * A curve bounds H_γ(P||Q) = Σ (P − γQ)+ from above at γ_0 = 1 < γ_1 < … True curves are convex and
 * fall, so chords between bounds are bounds, a constant beyond the last one is, and so is the lower
 * hull. Below 1 the curve of the reversed pair says the same: H_γ(P||Q) = 1 − γ + γ H_{1/γ}(Q||P).
 * Results are inflated by UP: they are sums of terms that are not negative, so that few roundings
 * are a small share of them. Curves of all ordered pairs of k states are k·k rows, the diagonal unused.
 *
 * Theorem: docs/theory/f-sweep.md */

#include "kernel.h"

#define UP (1.0 + 0x1p-44)
#define HELPS 0x1p-13 /* a reference state that lowers no value by this share is left out next time */

/* The lower hull of a curve over γ ≥ 0, by rising γ. As lines y + x·t it says the largest power of a
 * test of size t; between the lines i and i − 1 a test has size at[i] and power to[i]. */
struct hull {
    int64_t count;
    double *x, *y, *at, *to;
};

static double up(double value) { return value * UP + 0x1p-1000; }

static void add_point(struct hull *h, double x, double y) {
    int64_t m = h->count;
    const double *X = h->x, *Y = h->y;
    while (m > 1 &&
           (Y[m - 1] - Y[m - 2]) * (x - X[m - 1]) >= (y - Y[m - 1]) * (X[m - 1] - X[m - 2]))
        m--;
    h->x[m] = x;
    h->y[m] = y;
    h->count = m + 1;
}

/* The hull of a curve, read below 1 from that of the reversed pair. */
static void hull_of(struct hull *h, int64_t points, const double *gamma, const double *curve,
                    const double *reversed) {
    h->count = 0;
    add_point(h, 0.0, 1.0);
    for (int64_t i = points - 1; i > 0; i--) {
        const double x = (1.0 / gamma[i]) * (1.0 + 0x1p-51);
        const double apart = (gamma[i] - 1.0) / gamma[i]; /* 1 − 1/γ would lose digits near 1 */
        add_point(h, x, lesser(1.0, apart * (1.0 + 0x1p-50) + reversed[i] * x));
    }
    double least = lesser(curve[0], reversed[0]);
    for (int64_t i = 0; i < points && (i == 0 || least > 0.0); i++) {
        least = lesser(least, curve[i]);
        add_point(h, gamma[i], least);
    }
    h->at[0] = h->to[0] = 1.0;
    for (int64_t i = 1; i < h->count; i++) {
        h->at[i] = (h->y[i - 1] - h->y[i]) / (h->x[i] - h->x[i - 1]);
        h->to[i] = h->y[i] + h->x[i] * h->at[i];
    }
}

/* a∘b on the grid: the lines of b and of a that meet at the same test, from the steepest on. Any
 * two lines compose to a bound, so that their choice costs accuracy only. */
static void compose(const struct hull *a, const struct hull *b, int64_t points, const double *gamma,
                    double *result) {
    int64_t i = a->count - 1, j = b->count - 1, t = points - 1;
    while (i > 0 && a->at[i] <= b->y[j]) i--; /* b is constant beyond its end */
    double x = a->x[i] * b->x[j] * (1.0 + 0x1p-52), y = a->y[i] + a->x[i] * b->y[j];
    while (t >= 0 && gamma[t] >= x) result[t--] = lesser(1.0, up(y));
    while (t >= 0 && (i > 0 || j > 0)) {
        if (j == 0 || (i > 0 && a->at[i] <= b->to[j])) i--;
        else j--;
        const double lower = a->x[i] * b->x[j] * (1.0 + 0x1p-52);
        const double higher = greater(y, a->y[i] + a->x[i] * b->y[j]);
        while (t >= 0 && gamma[t] >= lower) {
            const double share = (x - gamma[t]) / (x - lower);
            result[t] = lesser(1.0, up(y + share * (higher - y)));
            t--;
        }
        x = lower;
        y = higher;
    }
    while (t >= 0) result[t--] = 1.0;
}

static void least_of(int64_t points, double *curve, const double *other) {
    for (int64_t t = 0; t < points; t++) curve[t] = lesser(curve[t], other[t]);
}

/* a∘b or b∘a, whichever is less. */
static void compose_both(const struct hull *a, const struct hull *b, int64_t points,
                         const double *gamma, double *result, double *spare) {
    compose(a, b, points, gamma, result);
    compose(b, a, points, gamma, spare);
    least_of(points, result, spare);
}

/* The chord at x; `place` only moves up, for x that rise. */
static double value_at(const struct hull *h, double x, int64_t *place) {
    while (*place + 1 < h->count && h->x[*place + 1] <= x) (*place)++;
    const int64_t i = *place;
    if (i + 1 == h->count) return h->y[i];
    return h->y[i + 1] + (h->x[i + 1] - x) / (h->x[i + 1] - h->x[i]) * (h->y[i] - h->y[i + 1]);
}

/* Two rows of a kernel, entries known to a relative `margin`, and the curves between the states. */
struct rows {
    int64_t size, points;
    const double *gamma, *p, *q;
    double margin;
    const struct hull *joint;
};

/* c = p − γq, rounded up; returns the sum of what is above 0. */
static double excess(const struct rows *of, double gamma, double *c) {
    double above = 0.0;
    for (int64_t z = 0; z < of->size; z++) {
        c[z] = of->p[z] * (1.0 + of->margin) - gamma * (of->q[z] * (1.0 - of->margin));
        if (c[z] > 0) above += c[z];
    }
    return above;
}

/* Product coupling: what states with c > 0 have is spread over the others in proportion. */
static void by_coupling(const struct rows *of, double *c, int64_t *places, double *result) {
    const int64_t k = of->size;
    for (int64_t n = 0; n < k * k; n++) places[n] = 0;
    for (int64_t t = 0; t < of->points; t++) {
        const double above = excess(of, of->gamma[t], c);
        double below = 0.0, sum = 0.0;
        for (int64_t z = 0; z < k; z++)
            if (c[z] < 0) below -= c[z];
        if (above <= 0.0 || below <= 0.0) {
            result[t] = above > 0.0 ? lesser(1.0, up(above)) : 0.0;
            continue;
        }
        const double kappa = below / above * (1.0 - 0x1p-46);
        for (int64_t z = 0; z < k; z++)
            for (int64_t w = 0; c[z] > 0 && w < k; w++)
                if (c[w] < 0)
                    sum += c[z] * (-c[w] / below) *
                           value_at(of->joint + z * k + w, kappa, places + z * k + w);
        result[t] = lesser(1.0, up(lesser(sum, above)));
    }
}

/* What the lines that count at u(z0) = t add up to; `error` bounds the roundings of its slope. */
struct line {
    double level, slope, error;
};

/* upper[z] and lower[z] say which lines of the curves [z, z0] and [z0, z] count. */
struct lines {
    int64_t *upper, *lower;
};

static struct line line_at(const struct rows *of, int64_t z0, const double *c, struct lines at) {
    struct line sum = {0.0, c[z0], fabs(c[z0])};
    for (int64_t z = 0; z < of->size; z++) {
        if (z == z0) continue;
        const struct hull *above = of->joint + z * of->size + z0, *below = of->joint + z0 * of->size + z;
        double slope = 0.0;
        if (c[z] > 0) {
            sum.level += c[z] * above->y[at.upper[z]];
            slope = c[z] * above->x[at.upper[z]];
        } else if (at.lower[z] < below->count) {
            slope = c[z] / below->x[at.lower[z]];
            sum.level -= slope * below->y[at.lower[z]];
        }
        sum.slope += slope;
        sum.error += fabs(slope);
    }
    sum.error *= (double)(of->size + 8) * 0x1p-52;
    return sum;
}

/* The next place below at which other lines count, in `place`; moves there. Returns which index it
 * moved, NULL at t = 0. */
static int64_t *next_line(const struct rows *of, int64_t z0, struct lines at, double *place) {
    int64_t *moved = NULL;
    double highest = 0.0;
    for (int64_t z = 0; z < of->size; z++) {
        if (z == z0) continue;
        const struct hull *above = of->joint + z * of->size + z0, *below = of->joint + z0 * of->size + z;
        const int64_t u = at.upper[z] + 1, d = at.lower[z] + 1;
        if (u < above->count && above->at[u] > highest) {
            highest = above->at[u];
            moved = at.upper + z;
        }
        const double to = d < below->count ? below->to[d] : d == below->count ? below->y[d - 1] : 0.0;
        if (to > highest) {
            highest = to;
            moved = at.lower + z;
        }
    }
    if (moved != NULL) {
        (*moved)++;
        *place = lesser(*place, highest);
    }
    return moved;
}

/* Reference state z0: (p − γq)·u is at most a concave function of t = u(z0), and that at most the
 * larger value, at any place, of a line that counts below it and one that counts above. The best
 * place moves down as γ grows. */
static void by_reference(const struct rows *of, int64_t z0, double *c, struct lines at,
                         double *result) {
    for (int64_t z = 0; z < of->size; z++) {
        at.upper[z] = 0;
        at.lower[z] = 1;
    }
    int64_t *last = NULL;
    double place = 1.0;
    for (int64_t t = 0; t < of->points; t++) {
        const double above = excess(of, of->gamma[t], c);
        if (above <= 0.0) {
            result[t] = 0.0;
            continue;
        }
        struct line left = line_at(of, z0, c, at);
        while (left.slope < 0.0) {
            int64_t *moved = next_line(of, z0, at, &place);
            if (moved == NULL) break;
            last = moved;
            left = line_at(of, z0, c, at);
        }
        double bound = left.level + greater(0.0, left.slope + left.error) *
                                        (left.slope < 0.0 ? 1.0 : place);
        if (left.slope >= 0.0 && last != NULL) {
            (*last)--;
            const struct line right = line_at(of, z0, c, at);
            (*last)++;
            const double rise = right.slope + right.error;
            const double there = right.level + rise * (rise > 0.0 ? 1.0 : place);
            bound = greater(bound, there + 0x1p-48 * right.level); /* a difference */
        }
        result[t] = lesser(1.0, up(lesser(bound, above)));
    }
}

/* Room, in doubles, for one call with curves of so many states and points. */
static int64_t room_of(int64_t size, int64_t points) {
    const int64_t hulls = 2 * size * size + 4;
    return hulls * (8 * points + 8 + (int64_t)(sizeof(struct hull) / sizeof(double) + 1)) +
           (2 * size * size + 4) * points + 2 * size * size + 8 * size + 8;
}

EXPORTED int64_t tradeoff_room(int64_t size, int64_t points) {
    if (size < 1 || size > 64 || points < 2 || points > 1 << 20) return BAD_SIZES;
    return 8 * room_of(size, points);
}

struct bench {
    struct hull *hulls;
    double *curves, *spare, *c;
    int64_t *places;
    struct lines lines;
};

static struct bench lay_out(int64_t size, int64_t points, double *room) {
    const int64_t hulls = 2 * size * size + 4;
    struct bench b;
    b.hulls = (struct hull *)room;
    room += hulls * (int64_t)(sizeof(struct hull) / sizeof(double) + 1);
    for (int64_t n = 0; n < hulls; n++) {
        const int64_t each = 2 * points + 2;
        b.hulls[n] = (struct hull){0, room, room + each, room + 2 * each, room + 3 * each};
        room += 4 * each;
    }
    b.curves = room;
    room += 2 * size * size * points;
    b.spare = room;
    room += 2 * points;
    b.c = room;
    room += size;
    b.places = (int64_t *)room;
    b.lines = (struct lines){b.places + size * size, b.places + size * size + size};
    return b;
}

/* The curves of min(g∘r, r∘g) for all pairs; where data do not tell states apart r stays. The hulls
 * of r are left in `hulls`. */
static void join(int64_t size, int64_t points, const double *gamma, const uint8_t *apart,
                 const struct hull *level, const double *r, struct hull *hulls, double *joint,
                 double *spare) {
    for (int64_t z = 0; z < size; z++)
        for (int64_t w = 0; w < size; w++) {
            if (z == w) continue;
            const int64_t here = z * size + w;
            hull_of(hulls + here, points, gamma, r + here * points, r + (w * size + z) * points);
            if (apart[here])
                compose_both(level, hulls + here, points, gamma, joint + here * points, spare);
            else memcpy(joint + here * points, r + here * points, (size_t)points * sizeof *r);
        }
}

/* One step of the f-sweep: what the kernel (size, size) with rows p(x, ·) makes of g∘r. Pairs with a
 * state that is not possible get no bound. With `every` all reference states are tried, else those
 * that helped the last time: `useful`, (size, size, size). */
static void APART step(int64_t size, int64_t points, const double *gamma, const uint8_t *apart,
                       const double *level, const double *kernel, const uint8_t *possible,
                       double margin, int every, uint8_t *useful, const double *r, double *result,
                       struct bench b) {
    struct hull *g = b.hulls + size * size;
    hull_of(g, points, gamma, level, level);
    join(size, points, gamma, apart, g, r, b.hulls, b.curves, b.spare);
    for (int64_t z = 0; z < size; z++)
        for (int64_t w = 0; w < size; w++)
            if (z != w)
                hull_of(b.hulls + z * size + w, points, gamma, b.curves + (z * size + w) * points,
                        b.curves + (w * size + z) * points);
    for (int64_t x = 0; x < size; x++)
        for (int64_t y = 0; y < size; y++) {
            if (x == y) continue;
            double *out = result + (x * size + y) * points;
            if (!possible[x] || !possible[y]) {
                for (int64_t t = 0; t < points; t++) out[t] = 1.0;
                continue;
            }
            const struct rows of = {size,   points, gamma, kernel + x * size, kernel + y * size,
                                    margin, b.hulls};
            by_coupling(&of, b.c, b.places, out);
            for (int64_t z0 = 0; size > 2 && z0 < size; z0++) {
                uint8_t *helps = useful + (x * size + y) * size + z0;
                if (!every && !*helps) continue;
                by_reference(&of, z0, b.c, b.lines, b.spare);
                *helps = 0;
                for (int64_t t = 0; t < points && !*helps; t++)
                    *helps = b.spare[t] < out[t] * (1.0 - HELPS);
                least_of(points, out, b.spare);
            }
            for (int64_t t = 1; t < points; t++) out[t] = lesser(out[t], out[t - 1]);
        }
}

EXPORTED int tradeoff_step(int64_t size, int64_t points, const double *gamma, const uint8_t *apart,
                           const double *level, const double *kernel, const uint8_t *possible,
                           double margin, int64_t every, uint8_t *useful, const double *r,
                           double *result, double *room) {
    if (tradeoff_room(size, points) < 0) return BAD_SIZES;
    const environment before = plain_environment();
    step(size, points, gamma, apart, level, kernel, possible, margin, every != 0, useful, r, result,
         lay_out(size, points, room));
    restore_environment(before);
    return DONE;
}

static void APART spread_step(int64_t points, const double *gamma, const double *level,
                              const double *spread, const double *r, double *result,
                              struct bench b) {
    struct hull *g = b.hulls, *h = b.hulls + 1;
    int64_t place = 0;
    hull_of(g, points, gamma, level, level);
    hull_of(h, points, gamma, r, r);
    compose_both(g, h, points, gamma, b.curves, b.spare);
    hull_of(h, points, gamma, b.curves, b.curves);
    for (int64_t t = 0; t < points; t++) {
        const double kappa = (1.0 + (gamma[t] - 1.0) / spread[t]) * (1.0 - 0x1p-46);
        result[t] = spread[t] > 0.0 ? lesser(1.0, up(spread[t] * value_at(h, kappa, &place))) : 0.0;
    }
}

/* The same with one curve for all pairs: η_γ J(1 + (γ − 1)/η_γ), η on the grid. */
EXPORTED int tradeoff_spread_step(int64_t points, const double *gamma, const double *level,
                                  const double *spread, const double *r, double *result,
                                  double *room) {
    if (tradeoff_room(1, points) < 0) return BAD_SIZES;
    const environment before = plain_environment();
    spread_step(points, gamma, level, spread, r, result, lay_out(1, points, room));
    restore_environment(before);
    return DONE;
}

static void APART leak(int64_t size, int64_t points, const double *gamma, const uint8_t *apart,
                       const uint8_t *asked, const double *level, const double *right,
                       const double *left, double *result, struct bench b) {
    const int64_t pairs = size * size;
    struct hull *rights = b.hulls, *lefts = rights + pairs, *g = lefts + pairs, *h = g + 1;
    double *with_right = b.curves, *with_left = with_right + pairs * points;
    double *least = b.spare + points;
    hull_of(g, points, gamma, level, level);
    join(size, points, gamma, apart, g, right, rights, with_right, b.spare);
    join(size, points, gamma, apart, g, left, lefts, with_left, b.spare);
    for (int64_t t = 0; t < points; t++) result[t] = 0.0;
    for (int64_t x = 0; x < size; x++)
        for (int64_t y = 0; y < size; y++) {
            const int64_t here = x * size + y, back = y * size + x;
            if (x == y || !asked[here]) continue;
            for (int64_t t = 0; t < points; t++) least[t] = 1.0;
            for (int side = 0; side < 2; side++) { /* g∘r with l, g∘l with r */
                const double *joint = side ? with_left : with_right;
                const struct hull *other = side ? rights + here : lefts + here;
                hull_of(h, points, gamma, joint + here * points, joint + back * points);
                compose(h, other, points, gamma, b.spare);
                least_of(points, least, b.spare);
                compose(other, h, points, gamma, b.spare);
                least_of(points, least, b.spare);
            }
            for (int64_t t = 0; t < points; t++) result[t] = greater(result[t], least[t]);
        }
}

/* What a node leaks: the largest over pairs that are asked for of the least over the orders of
 * g, r and l. */
EXPORTED int tradeoff_leak(int64_t size, int64_t points, const double *gamma, const uint8_t *apart,
                           const uint8_t *asked, const double *level, const double *right,
                           const double *left, double *result, double *room) {
    if (tradeoff_room(size, points) < 0) return BAD_SIZES;
    const environment before = plain_environment();
    leak(size, points, gamma, apart, asked, level, right, left, result,
         lay_out(size, points, room));
    restore_environment(before);
    return DONE;
}

static void APART compose_curves(int64_t points, const double *gamma, const double *a,
                                 const double *b, double *result, struct bench room) {
    hull_of(room.hulls, points, gamma, a, a);
    hull_of(room.hulls + 1, points, gamma, b, b);
    compose_both(room.hulls, room.hulls + 1, points, gamma, result, room.spare);
}

/* min(a∘b, b∘a) for curves that bound both directions. */
EXPORTED int tradeoff_compose(int64_t points, const double *gamma, const double *a, const double *b,
                              double *result, double *room) {
    if (tradeoff_room(1, points) < 0) return BAD_SIZES;
    const environment before = plain_environment();
    compose_curves(points, gamma, a, b, result, lay_out(1, points, room));
    restore_environment(before);
    return DONE;
}
