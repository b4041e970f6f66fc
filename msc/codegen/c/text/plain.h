/*** psabi ***/
/* About passing wide vectors to functions: here only functions of this file do, all of them inlined. */
#pragma GCC diagnostic ignored "-Wpsabi"

/*** scheduling ***/
/* Loads stay where they are used: all of a register tile's ahead would not fit the registers. */
#if defined(__aarch64__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif

/*** floor_div ***/
/* Quotient and remainder rounded towards minus infinity; b > 0. */
static inline «index» msc_floor_div(«index» a, «index» b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

static inline «index» msc_floor_mod(«index» a, «index» b)
{
    return a - msc_floor_div(a, b) * b;
}

/*** bounds ***/
static inline «index» msc_min(«index» a, «index» b)
{
    return a < b ? a : b;
}

static inline «index» msc_max(«index» a, «index» b)
{
    return a > b ? a : b;
}

/*** prefetch ***/
/* Ask for the cache line so many bytes after p; it may lie past the array, as nothing is read. */
static inline void msc_prefetch(const void *p, uintptr_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)p + bytes));
}

/*** pragma ***/
#define MSC_PRAGMA(text) _Pragma(#text)

/*** pragma_unroll ***/
/* The next loop has n iterations, and its counter selects registers: it is unrolled whole. */
#if defined(__clang__)
#define MSC_UNROLL(n) MSC_PRAGMA(clang loop unroll(full))
#else
#define MSC_UNROLL(n) MSC_PRAGMA(GCC unroll n)
#endif

/*** pragma_rolled ***/
/* The next loop fills or copies vectors: unrolling it only takes the compiler longer. */
#if defined(__clang__)
#define MSC_ROLLED MSC_PRAGMA(clang loop unroll(disable))
#else
#define MSC_ROLLED MSC_PRAGMA(GCC unroll 1)
#endif

/*** merged ***/
/* A function of extents, which several kernels call: the compiler makes no copy for each of them. */
#if defined(__clang__)
#define MSC_MERGED __attribute__((noinline))
#else
#define MSC_MERGED __attribute__((noinline, noclone))
#endif

/*** subnormals ***/
/* The bits of a mode that take zeros for subnormal operands and results. */
#if defined(__SSE__)
#define MSC_FLUSH 0x8040
#else
#define MSC_FLUSH (1 << 24)
#endif

/* How this thread computes with floating-point numbers. */
static inline uint64_t msc_mode(void)
{
    uint64_t mode = 0;
#if defined(__SSE__)
    mode = __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
#endif
    return mode;
}

/* No access to memory moves from one mode to another. */
static inline void msc_set_mode(uint64_t mode)
{
    __asm__ volatile("" ::: "memory");
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(mode));
#else
    (void)mode;
#endif
    __asm__ volatile("" ::: "memory");
}

/*** wider_mask ***/
/* A mask with wider lanes, made anew where clang 14 extends some of four bytes with zeros. */
#if defined(__clang__) && defined(__aarch64__)
#define msc_wider_mask(mask, type) (__builtin_convertvector(mask, type) != 0)
#else
#define msc_wider_mask(mask, type) __builtin_convertvector(mask, type)
#endif
