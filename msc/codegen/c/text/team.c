/*** declaration ***/
typedef void msc_part(void *const *arguments, int64_t first, int64_t last);
void msc_share(msc_part *part, void *const *arguments, int64_t iterations);

/*** definition ***/
/* Threads that share loops. Iterations are cut into chunks; each member of the team has a range of chunks of its own,
   the same in each call, and then takes from the others' ranges. The caller is a member and starts at once. It waits at
   the end only for chunks that others have begun: never for a thread that does not run. Who computes a chunk changes no
   bit of it. With -DMSC_NO_THREADS the caller does all. */
typedef void msc_part(void *const *arguments, int64_t first, int64_t last);

#ifdef MSC_NO_THREADS
{linkage}void msc_share(msc_part *part, void *const *arguments, int64_t iterations)
{
    part(arguments, 0, iterations);
}
#else
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum {
    MSC_MOST_THREADS = {threads} ? {threads} : 64, /* no more than there are processors */
    MSC_CHUNKS = 8,                  /* of a member's range */
    MSC_SPIN = 100000,               /* nanoseconds of waiting before sleeping; waking up takes about as long */
    MSC_STACK = (1 << 20) + {stack}, /* bytes: what calls take, and local arrays */
};

static struct {
    /* The loop: written while no chunk can be claimed, read by those who have claimed one. */
    msc_part *part;
    void *const *arguments;
    int64_t iterations, chunks;
    uint64_t mode;
    /* The team, which a process starts with its first loop; a child process has a team of its own. */
    int members, started;
    atomic_int processor; /* where the caller runs */
    pid_t process;
    pthread_t workers[MSC_MOST_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Alignas(64) _Atomic pid_t user;         /* the process in which a call has the team */
    _Alignas(64) _Atomic int64_t loops;      /* counts up when there are chunks to claim, or to stop */
    _Alignas(64) _Atomic int64_t unfinished; /* chunks */
    _Alignas(64) atomic_bool sleeping;       /* somebody may be, whom nobody is waking */
    atomic_bool stop;
    struct {
        _Alignas(64) _Atomic int64_t left; /* chunks of a range that nobody has claimed */
    } ranges[MSC_MOST_THREADS];
} msc_team;

static int64_t msc_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline void msc_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* How many processors this process may run on, and which one this thread runs on, if the system says. */
static int msc_processors(void)
{
#if defined(__linux__)
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) == 0)
        return CPU_COUNT(&all);
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static int msc_processor(void)
{
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

/* Leave the caller's processor. Where all are busy, a thread wakes up on that of the thread that wakes it, and stays:
   the two would take turns. */
static void msc_leave(int processor)
{
#if defined(__linux__)
    cpu_set_t all, others;
    if (processor != msc_processor() || sched_getaffinity(0, sizeof all, &all))
        return;
    others = all;
    CPU_CLR(processor, &others);
    if (sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof all, &all);
#else
    (void)processor;
#endif
}

/* Return when *word is no longer `value`: spin for a while, then sleep until msc_notify. */
static void msc_wait_while(_Atomic int64_t *word, int64_t value)
{
    const int64_t start = msc_clock();
    do {
        for (int k = 0; k < 16; ++k) {
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return;
            msc_pause();
        }
    } while (msc_clock() - start < MSC_SPIN);
    pthread_mutex_lock(&msc_team.lock);
    for (;;) {
        atomic_store(&msc_team.sleeping, true);
        if (atomic_load(word) != value)
            break;
        pthread_cond_wait(&msc_team.changed, &msc_team.lock);
    }
    pthread_mutex_unlock(&msc_team.lock);
}

/* After a change of what others wait for. They say that they sleep before they look, so none is missed. They are woken
   once: until a woken thread runs, which may take long, further loops neither call the system nor wait for its lock. */
static void msc_notify(void)
{
    if (!atomic_load(&msc_team.sleeping) || !atomic_exchange(&msc_team.sleeping, false))
        return;
    pthread_mutex_lock(&msc_team.lock);
    pthread_cond_broadcast(&msc_team.changed);
    pthread_mutex_unlock(&msc_team.lock);
}

/* The first chunk of a member's range. */
static int64_t msc_range(int member)
{
    return msc_team.chunks * member / msc_team.members;
}

/* Claim and run chunks until none is left, of this member's range first. */
static void msc_work(int self)
{
    int64_t done = 0;
    for (int k = 0; k < msc_team.members; ++k) {
        const int owner = (self + k) % msc_team.members;
        _Atomic int64_t *const range = &msc_team.ranges[owner].left;
        int64_t left = atomic_load_explicit(range, memory_order_relaxed);
        while (left > 0) {
            if (!atomic_compare_exchange_weak_explicit(range, &left, left - 1, memory_order_acquire,
                                                       memory_order_relaxed))
                continue;
            const int64_t chunk = msc_range(owner + 1) - left;
            msc_set_mode(msc_team.mode);
            msc_team.part(msc_team.arguments, msc_team.iterations * chunk / msc_team.chunks,
                          msc_team.iterations * (chunk + 1) / msc_team.chunks);
            ++done;
            left = atomic_load_explicit(range, memory_order_relaxed);
        }
    }
    if (done && atomic_fetch_sub(&msc_team.unfinished, done) == done && self)
        msc_notify();
}

static void *msc_worker(void *self)
{
    while (!atomic_load(&msc_team.stop)) {
        const int64_t loops = atomic_load(&msc_team.loops);
        msc_leave(atomic_load(&msc_team.processor));
        msc_work((int)(intptr_t)self);
        msc_wait_while(&msc_team.loops, loops);
    }
    return NULL;
}

/* Start the workers of this process, which take no signals. Those that the system refuses are not missed. */
static void msc_start(pid_t process)
{
    const int processors = msc_processors();
    sigset_t all, before;
    pthread_attr_t attributes;
    msc_team.members = processors < MSC_MOST_THREADS ? processors : MSC_MOST_THREADS;
    for (int k = 0; k < msc_team.members; ++k)
        atomic_store(&msc_team.ranges[k].left, 0);
    atomic_store(&msc_team.sleeping, false);
    pthread_mutex_init(&msc_team.lock, NULL);
    pthread_cond_init(&msc_team.changed, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, MSC_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (msc_team.started = 0; msc_team.started < msc_team.members - 1; ++msc_team.started)
        if (pthread_create(&msc_team.workers[msc_team.started], &attributes, msc_worker,
                           (void *)(intptr_t)(msc_team.started + 1)))
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    msc_team.process = process;
}

/* When the library is unloaded, or the process ends. */
__attribute__((destructor)) static void msc_stop(void)
{
    if (msc_team.process != getpid())
        return;
    atomic_store(&msc_team.stop, true);
    atomic_fetch_add(&msc_team.loops, 1);
    msc_notify();
    for (int k = 0; k < msc_team.started; ++k)
        pthread_join(msc_team.workers[k], NULL);
}

/* Run part(arguments, first, last) on ranges that make up all iterations. A call that finds the team with another one
   does all of its own. */
{linkage}void msc_share(msc_part *part, void *const *arguments, int64_t iterations)
{
    const pid_t self = getpid();
    int cancelling;
    pid_t user = atomic_load_explicit(&msc_team.user, memory_order_relaxed);
    if (iterations < 2 || user == self ||
        !atomic_compare_exchange_strong_explicit(&msc_team.user, &user, self, memory_order_acquire,
                                                 memory_order_relaxed)) {
        part(arguments, 0, iterations);
        return;
    }
    /* A caller that is cancelled ends behind the loop: others compute with its arguments. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    if (msc_team.process != self)
        msc_start(self);
    msc_team.part = part;
    msc_team.arguments = arguments;
    msc_team.iterations = iterations;
    msc_team.chunks = iterations < MSC_CHUNKS * msc_team.members ? iterations : MSC_CHUNKS * msc_team.members;
    msc_team.mode = msc_mode();
    atomic_store_explicit(&msc_team.unfinished, msc_team.chunks, memory_order_relaxed);
    for (int k = 0; k < msc_team.members; ++k)
        atomic_store_explicit(&msc_team.ranges[k].left, msc_range(k + 1) - msc_range(k), memory_order_release);
    atomic_store_explicit(&msc_team.processor, msc_processor(), memory_order_relaxed);
    atomic_fetch_add(&msc_team.loops, 1);
    msc_notify();
    msc_work(0);
    for (int64_t left; (left = atomic_load_explicit(&msc_team.unfinished, memory_order_acquire)) > 0;)
        msc_wait_while(&msc_team.unfinished, left);
    atomic_store_explicit(&msc_team.user, 0, memory_order_release);
    pthread_setcancelstate(cancelling, NULL);
}
#endif
