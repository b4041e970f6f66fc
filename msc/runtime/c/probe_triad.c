/* Memory bandwidth of one core by a triad a = b + s * c, in bytes per second, counting two reads and one write
   (the write-allocate read is not counted, as in STREAM). Prints the best of several passes. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PASSES = 8 };
static const size_t COUNT = (size_t)48 << 20;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void triad(float *restrict a, const float *restrict b, const float *restrict c, float scale) {
  for (size_t i = 0; i < COUNT; ++i) a[i] = b[i] + scale * c[i];
}

int main(void) {
  float *a = malloc(COUNT * sizeof *a), *b = malloc(COUNT * sizeof *b), *c = malloc(COUNT * sizeof *c);
  double best = 1e30;
  if (!a || !b || !c) return 1;
  for (size_t i = 0; i < COUNT; ++i) {
    a[i] = 0.0f;
    b[i] = 1.0f;
    c[i] = (float)i;
  }
  for (int pass = 0; pass < PASSES; ++pass) {
    double start = now();
    triad(a, b, c, 0.5f + (float)pass);
    double seconds = now() - start;
    if (seconds < best) best = seconds;
  }
  volatile float sink = a[COUNT / 2];
  (void)sink;
  printf("%.6e\n", 3.0 * (double)COUNT * sizeof(float) / best);
  free(a), free(b), free(c);
  return 0;
}
