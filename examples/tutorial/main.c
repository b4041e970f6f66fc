#include <stdio.h>
#include "LeNet5.h"

int main(void)
{
    static float image[LENET5_IMAGE_ELEMENTS], output[LENET5_OUTPUT_ELEMENTS];
    static _Alignas(LENET5_ALIGNMENT) unsigned char workspace[LENET5_WORKSPACE_BYTES];
    int best = 0;
    if (fread(image, sizeof(float), LENET5_IMAGE_ELEMENTS, stdin) != LENET5_IMAGE_ELEMENTS)
        return 1;
    if (LeNet5_run(image, output, workspace) != LENET5_OK)
        return 2;
    for (int k = 1; k < LENET5_OUTPUT_ELEMENTS; ++k)
        if (output[k] > output[best])
            best = k;
    fprintf(stderr, "a %d\n", best);
    return fwrite(output, sizeof(float), LENET5_OUTPUT_ELEMENTS, stdout) != LENET5_OUTPUT_ELEMENTS;
}
