#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

/* The functions of the model. */
extern int (*const msc_calls[])(void *const *, void *, double *) __attribute__((visibility("hidden")));

/* Whether the stack of this thread has room for the local arrays of kernels; asking the system takes a while. */
__attribute__((visibility("hidden"))) int msc_has_room(size_t stack)
{
#if defined(__linux__)
    static _Thread_local const char *end;
    if (end == NULL) {
        pthread_attr_t attributes;
        void *start;
        size_t size;
        if (pthread_getattr_np(pthread_self(), &attributes))
            return 1;
        pthread_attr_getstack(&attributes, &start, &size);
        pthread_attr_destroy(&attributes);
        end = start;
    }
    return (const char *)__builtin_frame_address(0) - end >= (ptrdiff_t)stack;
#else
    (void)stack;
    return 1;
#endif
}

/* Calls on a thread of their own: with the stack that they need, and such that the caller can wait for a while, look
   for signals, and end them. */
struct msc_call {
    pthread_t thread;
    size_t function;
    void *const *tensors;
    void *workspace;
    double *seconds;
    int status;
};

static void *msc_thread(void *argument)
{
    struct msc_call *const call = argument;
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    call->status = msc_calls[call->function](call->tensors, call->workspace, call->seconds);
    pthread_setcanceltype(before, &before);
    return NULL;
}

/* NULL if the system gives no thread or no memory. */
void *msc_artifact_start(void *const *tensors, void *workspace, double *seconds, size_t stack, size_t function)
{
    struct msc_call *const call = malloc(sizeof *call);
    sigset_t all, before;
    pthread_attr_t attributes;
    int failed;
    if (call == NULL)
        return NULL;
    *call = (struct msc_call){.function = function, .tensors = tensors, .workspace = workspace, .seconds = seconds};
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&call->thread, &attributes, msc_thread, call);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed)
        free(call);
    return failed ? NULL : call;
}

/* What the call returned, MSC_CANCELLED, or after about as many milliseconds MSC_RUNNING. */
int msc_artifact_wait(struct msc_call *call, int milliseconds)
{
    void *result;
    int status;
#if defined(__linux__)
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += milliseconds / 1000;
    end.tv_nsec += milliseconds % 1000 * 1000000L;
    if (end.tv_nsec >= 1000000000L) {
        end.tv_nsec -= 1000000000L;
        ++end.tv_sec;
    }
    if (pthread_timedjoin_np(call->thread, &result, &end))
        return MSC_RUNNING;
#else
    (void)milliseconds;
    pthread_join(call->thread, &result);
#endif
    status = result == PTHREAD_CANCELED ? MSC_CANCELLED : call->status;
    free(call);
    return status;
}

/* End a call; it has to be waited for. */
void msc_artifact_cancel(struct msc_call *call)
{
    pthread_cancel(call->thread);
}
