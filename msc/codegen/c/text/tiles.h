/*** allowed ***/
/* Whether Linux lets this process have tiles: it keeps their state for those that have asked. */
#if defined(__AMX_TILE__) && defined(__linux__)
#include <immintrin.h>
#include <sys/syscall.h>
long syscall(long number, ...);

static inline int msc_tiles_allowed(void)
{
    static int known; /* 1: yes, 2: no, 0: not asked yet */
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 0) {
        enum { REQUEST = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM, XTILEDATA */
        answer = syscall(SYS_arch_prctl, REQUEST, TILES) == 0 ? 1 : 2;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == 1;
}

typedef struct {
    uint8_t palette, start, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} msc_tiles;

/* Tiles 0 to 3 are sums, two rows of two; 4 and 5 are factors with rows, 6 and 7 those with columns. */
static inline void msc_set_tiles(int upper, int lower, int left, int right, int terms)
{
    const int rows[8] = {upper, upper, lower, lower, upper, lower, terms / 4, terms / 4};
    const int bytes[8] = {left * 4, right * 4, left * 4, right * 4, terms, terms, left * 4, right * 4};
    msc_tiles tiles = {.palette = 1};
    for (int k = 0; k < 8; ++k) {
        tiles.rows[k] = (uint8_t)(bytes[k] ? rows[k] : 0);
        tiles.row_bytes[k] = (uint16_t)(rows[k] ? bytes[k] : 0);
    }
    __asm__ volatile("" : : "m"(tiles)); /* GCC takes the instruction to read no more than its first bytes */
    _tile_loadconfig(&tiles);
}
#endif

/*** product ***/
/* c[m][n] += a[m][k] * b[k][n], summed over taps too: how many there are of two kinds, and how far each moves a and b.
   Four terms of a column lie side by side in b; a, b and c have rows so many bytes apart. */
static void {name}(int32_t *c, int64_t c_row, const void *a, int64_t a_row, const void *b, int64_t b_row,
    int m, int n, int k, const int64_t taps[6])
{
#if {macros}
    if (msc_tiles_allowed()) {
        /* What was stored before is in memory: loads of tiles do not tell C compilers that they read it. */
        __asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");
        const int height = (m + 15) / 16, rows = (m + height - 1) / height;
        const int left = n < 16 ? n : 16, right = n - left;
        int terms = 64, set_upper = 0, set_lower = 0;
        while (k % terms != 0)
            terms -= 4;
        for (int row = 0; row < m; row += 2 * rows) {
            const int upper = m - row < rows ? m - row : rows, rest = m - row - upper;
            const int lower = rest < rows ? rest : rows;
            if (upper != set_upper || lower != set_lower)
                msc_set_tiles(upper, lower, left, right, terms);
            set_upper = upper, set_lower = lower;
            char *at = (char *)c + row * c_row;
            char *under = at + upper * c_row;
            _tile_loadd(0, at, c_row);
            if (right)
                _tile_loadd(1, at + 64, c_row);
            if (lower)
                _tile_loadd(2, under, c_row);
            if (lower && right)
                _tile_loadd(3, under + 64, c_row);
            for (int64_t tap = 0; tap < taps[0] * taps[3]; ++tap) {
                const int64_t first = tap / taps[3], second = tap % taps[3];
                const char *x = (const char *)a + row * a_row + first * taps[1] + second * taps[4];
                const char *y = (const char *)b + first * taps[2] + second * taps[5];
                for (int step = 0; step < k; step += terms, x += terms, y += terms / 4 * b_row) {
                    _tile_loadd(4, x, a_row);
                    _tile_loadd(6, y, b_row);
                    {multiply}(0, 4, 6);
                    if (right) {
                        _tile_loadd(7, y + 64, b_row);
                        {multiply}(1, 4, 7);
                    }
                    if (lower) {
                        _tile_loadd(5, x + upper * a_row, a_row);
                        {multiply}(2, 5, 6);
                    }
                    if (lower && right)
                        {multiply}(3, 5, 7);
                }
            }
            _tile_stored(0, at, c_row);
            if (right)
                _tile_stored(1, at + 64, c_row);
            if (lower)
                _tile_stored(2, under, c_row);
            if (lower && right)
                _tile_stored(3, under + 64, c_row);
        }
        _tile_release();
        return;
    }
#endif
    for (int row = 0; row < m; ++row)
        for (int64_t tap = 0; tap < taps[0] * taps[3]; ++tap) {
            const int64_t first = tap / taps[3], second = tap % taps[3];
            const {a} *x = (const {a} *)((const char *)a + row * a_row + first * taps[1] + second * taps[4]);
            const {b} *y = (const {b} *)((const char *)b + first * taps[2] + second * taps[5]);
            int32_t *sums = (int32_t *)((char *)c + row * c_row);
            for (int term = 0; term < k; ++term)
                for (int column = 0; column < n; ++column)
                    sums[column] = (int32_t)((uint32_t)sums[column] +
                        (uint32_t)(x[term] * y[term / 4 * b_row + column * 4 + term % 4]));
        }
}
