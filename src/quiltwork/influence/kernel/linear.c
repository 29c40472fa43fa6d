/* Systems of linear equations whose digits do not depend on the machine: elimination in one order,
 * with the largest pivot of a column, the first of equals. Cost: O(k³ + k²·columns).
 */

#include "kernel.h"

static void APART swap(double *one, double *other, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const double kept = one[i];
        one[i] = other[i];
        other[i] = kept;
    }
}

static void APART subtract(double *row, const double *pivot, double factor, int64_t count) {
    for (int64_t i = 0; i < count; i++) row[i] -= factor * pivot[i];
}

static int APART eliminate(int64_t size, int64_t columns, double *matrix, double *right,
                           int64_t *column, int64_t most) {
    int64_t work = 0;
    for (int64_t at = *column; at < size; at++) {
        int64_t best = at;
        for (int64_t i = at + 1; i < size; i++) {
            if (fabs(matrix[i * size + at]) > fabs(matrix[best * size + at])) best = i;
        }
        double *pivot = matrix + at * size;
        if (best != at) {
            swap(pivot, matrix + best * size, size);
            swap(right + at * columns, right + best * columns, columns);
        }
        for (int64_t i = at + 1; i < size; i++) {
            const double factor = matrix[i * size + at] / pivot[at];
            if (factor == 0) continue;
            subtract(matrix + i * size + at, pivot + at, factor, size - at);
            subtract(right + i * columns, right + at * columns, factor, columns);
            work += size - at + columns + 8;
        }
        if (work > most && at + 1 < size) {
            *column = at + 1;
            return MORE;
        }
    }
    *column = size;
    for (int64_t at = size - 1; at >= 0; at--) {
        for (int64_t i = at + 1; i < size; i++) {
            subtract(right + at * columns, right + i * columns, matrix[at * size + i], columns);
        }
        for (int64_t c = 0; c < columns; c++) right[at * columns + c] /= matrix[at * size + at];
    }
    return DONE;
}

/* Solve matrix · x = right, both of which are overwritten, `right` by x; go on at *column. Where
 * the matrix is singular some of x is infinite or not a number. */
EXPORTED int solve_linear(int64_t size, int64_t columns, double *matrix, double *right,
                          int64_t *column, int64_t most) {
    if (size < 0 || columns < 0 || (size > 0 && columns > MOST_CELLS / size)) return BAD_SIZES;
    if (size > 0 && size > MOST_CELLS / size) return BAD_SIZES;
    if (*column < 0 || *column > size) return BAD_SIZES;
    if (*column == size) return DONE;
    const environment before = plain_environment();
    const int status = eliminate(size, columns, matrix, right, column, most);
    restore_environment(before);
    return status;
}
