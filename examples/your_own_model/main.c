#include <stdio.h>
#include "wine.h"

static _Alignas(WINE_ALIGNMENT) unsigned char workspace[WINE_WORKSPACE_BYTES + 1];

int main(void)
{
    const float x[1][4] = {{5.1f, 3.5f, 1.4f, 0.2f}};
    float class[1][3];
    if (wine_run(&x[0][0], &class[0][0], workspace) != WINE_OK) {
        return 1;
    }
    printf("%.3f %.3f %.3f\n", class[0][0], class[0][1], class[0][2]);
    return 0;
}
