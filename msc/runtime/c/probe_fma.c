/* Peak rate of single-precision fused multiply-adds on one core, in multiply-adds per second.
   Independent chains of vector FMAs fill the pipeline: chains * lanes each step. Prints the best of several runs:
   as many as the first argument says, which are about 5 ms each. As a shared library it measures once, in the caller's
   thread and for as long as asked, so that the clock is what it was. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
enum { LANES = 16, CHAINS = 16 };
#elif defined(__AVX__)
enum { LANES = 8, CHAINS = 12 };
#else
enum { LANES = 4, CHAINS = 12 };
#endif
enum { STEPS = 2000000 };

typedef float vec __attribute__((vector_size(LANES * sizeof(float))));

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Multiply-adds a second over so many steps. */
double multiply_adds_per_second(long steps) {
  vec sum[CHAINS];
  vec factor, addend;
  for (int lane = 0; lane < LANES; ++lane) {
    factor[lane] = 0.999f;
    addend[lane] = 0.001f;
  }
  for (int chain = 0; chain < CHAINS; ++chain) sum[chain] = addend * (float)chain;
  double start = now();
  for (long step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int chain = 0; chain < CHAINS; ++chain) sum[chain] = sum[chain] * factor + addend;
  }
  double seconds = now() - start;
  volatile float sink = 0;
  for (int chain = 0; chain < CHAINS; ++chain) sink = sink + sum[chain][0];
  return (double)steps * CHAINS * LANES / seconds;
}

int main(int count, char **arguments) {
  const int runs = count > 1 ? atoi(arguments[1]) : 60;
  double best = 0;
  for (int run = 0; run < runs; ++run) {
    double rate = multiply_adds_per_second(STEPS);
    if (rate > best) best = rate;
  }
  printf("%.6e\n", best);
  return 0;
}
