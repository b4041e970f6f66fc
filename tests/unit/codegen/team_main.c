/* Loops through the thread team, from one host thread and from several, and in a child process: each iteration is to
   run once, with the mode of the caller, whoever runs it. Prints how many ranges ran outside of their callers.
   Arguments: "fork" for child processes; "workers" where some must run outside: on a busy machine that may take a while. */
#define _GNU_SOURCE
#include "team.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITERATIONS = 300, HOSTS = 4 };

struct loop {
    int count[ITERATIONS];
    uint64_t mode;
    pthread_t caller;
};

static atomic_int helped, failed;

static void part(void *const *arguments, int64_t first, int64_t last)
{
    struct loop *const loop = arguments[0];
    const int64_t rounds = *(const int64_t *)arguments[1];
    if (!pthread_equal(pthread_self(), loop->caller))
        ++helped;
    if (loop->mode != msc_mode())
        ++failed;
    for (int64_t i = first; i < last; ++i)
        for (volatile int64_t k = 0; k < rounds; ++k)
            loop->count[i] += k == 0;
}

static void check(int64_t iterations, int64_t rounds)
{
    struct loop loop = {.caller = pthread_self()};
    loop.mode = msc_mode();
    void *const arguments[] = {&loop, &rounds};
    msc_share(part, arguments, iterations);
    for (int64_t i = 0; i < ITERATIONS; ++i)
        if (loop.count[i] != (i < iterations))
            ++failed;
}

static void *host(void *flush)
{
    if (flush)
        msc_set_mode(msc_mode() | MSC_FLUSH);
    for (int64_t iterations = 0; iterations <= ITERATIONS; ++iterations)
        check(iterations, 1 + iterations % 7 * 50);
    return NULL;
}

static void child(void)
{
    fflush(stdout);
    const pid_t process = fork();
    if (process == 0) {
        host(NULL);
        exit(failed != 0);
    }
    int status = 1;
    waitpid(process, &status, 0);
    failed += status != 0;
}

static int given(char **arguments, const char *word)
{
    while (*arguments && strcmp(*arguments, word))
        ++arguments;
    return *arguments != NULL;
}

int main(int count, char **arguments)
{
    (void)count;
    const int forks = given(arguments, "fork");
    const int turns = given(arguments, "workers") ? 5000 : 20;
    pthread_t hosts[HOSTS];
    host(NULL);
    for (int k = 0; k < HOSTS; ++k)
        pthread_create(&hosts[k], NULL, host, k % 2 ? &hosts : NULL);
    for (int k = 0; forks && k < 8; ++k)
        child();
    for (int k = 0; k < HOSTS; ++k)
        pthread_join(hosts[k], NULL);
    if (forks)
        child();
    for (int k = 0; k < 20 || (k < turns && !helped); ++k)
        check(ITERATIONS, 20000);
    printf("%d helped, %d failed\n", (int)helped, (int)failed);
    return failed != 0;
}
