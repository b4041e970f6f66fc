/* Runs a model in buffers of exactly its sizes, so that AddressSanitizer sees every access outside of them.

     program INPUTS OUTPUTS     files of all inputs' bytes, one after the other; of all outputs' */
#define _POSIX_C_SOURCE 200112L

#include <stdio.h>
#include <stdlib.h>

#include "model_table.h"

#define TENSORS (MSC_INPUTS + MSC_OUTPUTS)

int main(int argc, char **argv)
{
    void *tensors[TENSORS + 1];
    void *workspace = NULL;
    FILE *const inputs = fopen(argv[1], "rb"), *const outputs = fopen(argv[2], "wb");
    if (argc != 3 || !inputs || !outputs || posix_memalign(&workspace, MSC_ALIGNMENT, MSC_WORKSPACE_BYTES))
        return 2;
    for (int k = 0; k < TENSORS; ++k) {
        const size_t bytes = msc_tensors[k].element_bytes * msc_tensors[k].elements;
        tensors[k] = malloc(bytes);
        if (!tensors[k] || (k < MSC_INPUTS && fread(tensors[k], 1, bytes, inputs) != bytes))
            return 3;
    }
    if (msc_run(tensors, workspace))
        return 4;
    for (int k = 0; k < TENSORS; ++k) {
        const size_t bytes = msc_tensors[k].element_bytes * msc_tensors[k].elements;
        if (k >= MSC_INPUTS && fwrite(tensors[k], 1, bytes, outputs) != bytes)
            return 5;
        free(tensors[k]);
    }
    free(workspace);
    return fclose(inputs) || fclose(outputs);
}
