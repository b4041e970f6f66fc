/* Runs a model in buffers of exactly its sizes, so that AddressSanitizer sees every access outside of them.

     program INPUTS OUTPUTS     files of all inputs' bytes, one after the other, and of the sizes that calls decide;
                                of the bytes of all results: outputs, and inputs that the call updates */
#define _POSIX_C_SOURCE 200112L

#include <stdio.h>
#include <stdlib.h>

int msc_artifact_run(void *const *tensors, void *workspace);

/* Of the inputs, the outputs, and the sizes. */
static const size_t bytes[] = {BYTES};

/* The numbers of the tensors that are results. */
static const int results[] = {RESULTS};

enum { COUNT = sizeof bytes / sizeof *bytes, RESULT_COUNT = sizeof results / sizeof *results };

static int is_output(int k)
{
    return k >= INPUTS && k < INPUTS + OUTPUTS;
}

int main(int argc, char **argv)
{
    void *tensors[COUNT];
    void *workspace = NULL;
    FILE *const inputs = fopen(argv[1], "rb"), *const outputs = fopen(argv[2], "wb");
    if (argc != 3 || !inputs || !outputs || posix_memalign(&workspace, ALIGNMENT, WORKSPACE))
        return 2;
    for (int k = 0; k < COUNT; ++k) {
        tensors[k] = malloc(bytes[k]);
        if (!tensors[k] || (!is_output(k) && fread(tensors[k], 1, bytes[k], inputs) != bytes[k]))
            return 3;
    }
    if (msc_artifact_run(tensors, workspace))
        return 4;
    for (int k = 0; k < RESULT_COUNT; ++k) {
        const int tensor = results[k];
        if (fwrite(tensors[tensor], 1, bytes[tensor], outputs) != bytes[tensor])
            return 5;
    }
    for (int k = 0; k < COUNT; ++k)
        free(tensors[k]);
    free(workspace);
    return fclose(inputs) || fclose(outputs);
}
