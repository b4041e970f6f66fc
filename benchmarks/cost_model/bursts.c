/* The least time of a call of a kernel, in bursts of calls one after the other on one core.
   Time is the thread's own: what else the system runs meanwhile does not count. */
#define _POSIX_C_SOURCE 199309L
#include <time.h>

typedef void kernel(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                    void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double burst(kernel *run, void **a, long calls) {
  double start = now();
  for (long call = 0; call < calls; ++call)
    run(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16],
        a[17], a[18], a[19], a[20], a[21], a[22], a[23]);
  return (now() - start) / (double)calls;
}

/* Seconds of a call: the least average of a burst of at least `seconds`, of which there are `bursts` after a first
   one, in which caches and the clock become what they are in the others. */
double least_seconds(kernel *run, void **arguments, double seconds, int bursts) {
  long calls = 1;
  double least = burst(run, arguments, calls);
  while (least * (double)calls < seconds) {
    long more = (long)(seconds / least) + 1;
    calls = more > 8 * calls ? 8 * calls : more > calls ? more : calls + 1;
    least = burst(run, arguments, calls);
  }
  for (int k = 0; k < bursts; ++k) {
    double time = burst(run, arguments, calls);
    if (time < least) least = time;
  }
  return least;
}
