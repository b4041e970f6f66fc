/* Runs the model on the inputs in golden.bin and compares its outputs with those stored after them.

     selftest [golden.bin]

   The file lies beside the program, where no other is named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_table.h"
#include "tensor.h"

#define TENSORS (MSC_INPUTS + MSC_OUTPUTS)

/* Of each output: how far it may be off, and how far for each unit of size. */
static const double tolerances[][2] = {@TOLERANCES@};

static int fail(const char *what)
{
    printf("FAIL: %s: %s\n", MSC_NAME, what);
    return 1;
}

/* Equal, both NaN, or close. */
static int agrees(double got, double wanted, const double *tolerance)
{
    if (got == wanted || (isnan(got) && isnan(wanted)))
        return 1;
    return fabs(got - wanted) <= tolerance[0] + tolerance[1] * fabs(wanted);
}

static int compare(const struct msc_tensor *tensor, const void *got, const void *wanted, const double *tolerance)
{
    for (size_t k = 0; k < tensor->elements; ++k) {
        const double a = tensor_number(tensor, got, k), b = tensor_number(tensor, wanted, k);
        if (!agrees(a, b, tolerance)) {
            printf("FAIL: %s: output %s, element %zu is %.9g, expected %.9g\n", MSC_NAME, tensor->name, k, a, b);
            return 1;
        }
    }
    return 0;
}

static int check(FILE *golden)
{
    static void *tensors[TENSORS + 1], *expected[TENSORS + 1];
    void *const workspace = tensor_allocate(MSC_WORKSPACE_BYTES);
    for (int k = 0; k < TENSORS; ++k) {
        const size_t elements = msc_tensors[k].elements, size = msc_tensors[k].element_bytes;
        tensors[k] = tensor_allocate(elements * size);
        expected[k] = tensor_allocate(elements * size);
        if (!workspace || !tensors[k] || !expected[k])
            return fail("out of memory");
        if (fread(expected[k], size, elements, golden) != elements)
            return fail("golden.bin is too short");
        if (k < MSC_INPUTS)
            memcpy(tensors[k], expected[k], elements * size);
    }
    if (msc_run(tensors, workspace))
        return fail("the model reported an error");
    for (int k = MSC_INPUTS; k < TENSORS; ++k)
        if (compare(&msc_tensors[k], tensors[k], expected[k], tolerances[k - MSC_INPUTS]))
            return 1;
    printf("PASS: %s\n", MSC_NAME);
    return 0;
}

/* golden.bin in the folder of the program. */
static FILE *open_beside(const char *program)
{
    static char path[4096];
    const char *const slash = strrchr(program, '/');
    const int length = snprintf(path, sizeof path, "%.*sgolden.bin", slash ? (int)(slash - program + 1) : 0, program);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "rb") : NULL;
}

int main(int argc, char **argv)
{
    FILE *golden = argc > 1 ? fopen(argv[1], "rb") : open_beside(argc ? argv[0] : "");
    if (!golden)
        return fail("cannot read golden.bin, which lies beside this program; an argument names it elsewhere");
    const int status = check(golden);
    fclose(golden);
    return status;
}
