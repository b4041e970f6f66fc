/* Runs the model on the inputs in golden.bin and compares its outputs with those stored after them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_table.h"
#include "tensor.h"

#define RELATIVE @RELATIVE@
#define ABSOLUTE @ABSOLUTE@
#define TENSORS (MODEL_INPUTS + MODEL_OUTPUTS)

static int fail(const char *what)
{
    printf("FAIL: %s: %s\n", MODEL_NAME, what);
    return 1;
}

/* Equal, both NaN, or close. */
static int agrees(double got, double wanted)
{
    if (got == wanted || (isnan(got) && isnan(wanted)))
        return 1;
    return fabs(got - wanted) <= ABSOLUTE + RELATIVE * fabs(wanted);
}

static int compare(const struct model_tensor *tensor, const void *got, const void *wanted)
{
    for (size_t k = 0; k < tensor->elements; ++k) {
        const double a = tensor_number(tensor, got, k), b = tensor_number(tensor, wanted, k);
        if (!agrees(a, b)) {
            printf("FAIL: %s: output %s, element %zu is %.9g, expected %.9g\n", MODEL_NAME, tensor->name, k, a, b);
            return 1;
        }
    }
    return 0;
}

static int check(FILE *golden)
{
    static void *tensors[TENSORS + 1], *expected[TENSORS + 1];
    void *const workspace = tensor_allocate(MODEL_WORKSPACE_BYTES);
    for (int k = 0; k < TENSORS; ++k) {
        const size_t elements = model_tensors[k].elements, size = model_tensors[k].element_bytes;
        tensors[k] = tensor_allocate(elements * size);
        expected[k] = tensor_allocate(elements * size);
        if (!workspace || !tensors[k] || !expected[k])
            return fail("out of memory");
        if (fread(expected[k], size, elements, golden) != elements)
            return fail("golden.bin is too short");
        if (k < MODEL_INPUTS)
            memcpy(tensors[k], expected[k], elements * size);
    }
    if (model_run(tensors, workspace))
        return fail("the model reported an error");
    for (int k = MODEL_INPUTS; k < TENSORS; ++k)
        if (compare(&model_tensors[k], tensors[k], expected[k]))
            return 1;
    printf("PASS: %s\n", MODEL_NAME);
    return 0;
}

int main(void)
{
    FILE *golden = fopen("golden.bin", "rb");
    if (!golden)
        return fail("cannot read golden.bin");
    const int status = check(golden);
    fclose(golden);
    return status;
}
