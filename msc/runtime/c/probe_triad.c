/* Memory bandwidth of one core by a triad a = b + s * c, in bytes per second, counting two reads and one write
   (the write-allocate read is not counted, as in STREAM). Prints the best of several passes for each working set, given
   in bytes on the command line. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PASSES = 8 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void triad(size_t count, float *restrict a, const float *restrict b, const float *restrict c, float scale) {
  for (size_t i = 0; i < count; ++i) a[i] = b[i] + scale * c[i];
}

/* Small working sets are passed over many times, so that the clock's resolution does not matter. */
static double rate(size_t count, float *a, const float *b, const float *c) {
  const size_t times = 1 + ((size_t)1 << 20) / (count + 1);
  double best = 1e30;
  for (int pass = 0; pass < PASSES; ++pass) {
    double start = now();
    for (size_t k = 0; k < times; ++k) triad(count, a, b, c, 0.5f + (float)(pass + (int)k));
    double seconds = (now() - start) / (double)times;
    if (seconds < best) best = seconds;
  }
  return 3.0 * (double)count * sizeof(float) / best;
}

int main(int argc, char **argv) {
  size_t largest = 0;
  for (int k = 1; k < argc; ++k) {
    size_t count = strtoull(argv[k], NULL, 10) / (3 * sizeof(float));
    if (count > largest) largest = count;
  }
  float *a = malloc(largest * sizeof *a), *b = malloc(largest * sizeof *b), *c = malloc(largest * sizeof *c);
  if (!a || !b || !c) return 1;
  for (size_t i = 0; i < largest; ++i) {
    a[i] = 0.0f;
    b[i] = 1.0f;
    c[i] = (float)i;
  }
  for (int k = 1; k < argc; ++k) printf("%.6e\n", rate(strtoull(argv[k], NULL, 10) / (3 * sizeof(float)), a, b, c));
  volatile float sink = a[largest / 2];
  (void)sink;
  free(a), free(b), free(c);
  return 0;
}
