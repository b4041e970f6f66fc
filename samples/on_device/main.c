/* Trains the last layer of LeNet-5 on a device: five times over the digits of `digits.bin`, the loss of each step on
   a line. All memory is static: the layer, its momenta, a batch, and the workspace of the step. */

#include <stdio.h>

#include "step.h"

enum { BATCHES = 6, EPOCHS = 5 };

static float weight[STEP_FC3_WEIGHT_ELEMENTS], bias[STEP_FC3_BIAS_ELEMENTS];
static float weight_moments[STEP_FC3_WEIGHT_ELEMENTS], bias_moments[STEP_FC3_BIAS_ELEMENTS];
static int32_t global_step[1];
static float images[STEP_X0_ELEMENTS];
static int32_t labels[STEP_X1_ELEMENTS];
static STEP_STATIC_WORKSPACE(workspace);

int main(int argc, char **argv)
{
    FILE *digits = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!digits) {
        fprintf(stderr, "usage: %s digits.bin\n", argv[0]);
        return 2;
    }
    for (int step = 0; step < EPOCHS * BATCHES; ++step) {
        if (step % BATCHES == 0)
            rewind(digits);
        if (fread(images, sizeof images, 1, digits) != 1 || fread(labels, sizeof labels, 1, digits) != 1) {
            fprintf(stderr, "%s is too short\n", argv[1]);
            return 1;
        }
        float loss;
        int error = step_run(images, labels, weight, bias, weight_moments, bias_moments, global_step, &loss, workspace);
        if (error != STEP_OK) {
            fprintf(stderr, "step %d: error %d\n", step, error);
            return 1;
        }
        printf("%.9g\n", loss);
    }
    fclose(digits);
    return 0;
}
