/* Products of matrices whose digits do not depend on the machine: every entry is summed in the
 * order of the inner index, one number after the other. Cost: O(rows · inner · columns). */

#include "kernel.h"

static void APART multiply(int64_t rows, int64_t inner, int64_t columns, const double *left,
                           const double *right, double *result) {
    for (int64_t i = 0; i < rows; i++) {
        double *sums = result + i * columns;
        memset(sums, 0, (size_t)columns * sizeof *sums);
        for (int64_t m = 0; m < inner; m++) {
            const double factor = left[i * inner + m], *row = right + m * columns;
            for (int64_t j = 0; j < columns; j++) sums[j] += factor * row[j];
        }
    }
}

/* result = left · right for `count` pairs of matrices, (rows, inner) and (inner, columns). */
EXPORTED int product(int64_t count, int64_t rows, int64_t inner, int64_t columns,
                     const double *left, const double *right, double *result) {
    if (count < 0 || rows < 0 || inner < 0 || columns < 0) return BAD_SIZES;
    const environment before = plain_environment();
    for (int64_t n = 0; n < count; n++) {
        multiply(rows, inner, columns, left + n * rows * inner, right + n * inner * columns,
                 result + n * rows * columns);
    }
    restore_environment(before);
    return DONE;
}
