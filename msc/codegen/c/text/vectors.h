/*** load ***/
static inline {v} load_{f}(const {e} *p)
{
    return *(const {v}_u *)p;
}

/*** store ***/
static inline void store_{f}({e} *p, {v} v)
{
    *({v}_u *)p = v;
}

/*** load_even ***/
/* p[0], p[2], p[4], ...; reads nothing after the last of them. */
static inline {v} load_even_{f}(const {e} *p)
{
    return __builtin_shufflevector(load_{f}(p), load_{f}(p + {n} - 1), {even});
}

/*** load_strided ***/
static inline {v} load_strided_{f}(const {e} *p, «index» stride)
{
    return ({v}){{strided}};
}

/*** store_strided ***/
static inline void store_strided_{f}({e} *p, «index» stride, {v} v)
{
{scatter}
}

/*** store_interleaved_2 ***/
/* The lanes of two vectors in turn. */
static inline void store_interleaved_2_{f}({e} *p, const {v} *v)
{
    store_{f}(p, __builtin_shufflevector(v[0], v[1], {zipped_low}));
    store_{f}(p + {n}, __builtin_shufflevector(v[0], v[1], {zipped_high}));
}

/*** store_interleaved_4 ***/
/* The lanes of four vectors in turn. */
static inline void store_interleaved_4_{f}({e} *p, const {v} *v)
{
    const {v} low[2] = {__builtin_shufflevector(v[0], v[2], {zipped_low}), __builtin_shufflevector(v[1], v[3], {zipped_low})};
    const {v} high[2] = {__builtin_shufflevector(v[0], v[2], {zipped_high}), __builtin_shufflevector(v[1], v[3], {zipped_high})};
    store_interleaved_2_{f}(p, low);
    store_interleaved_2_{f}(p + 2 * {n}, high);
}

/*** splat ***/
static inline {v} splat_{f}({e} value)
{
    return value - ({v}){0};
}

/*** select ***/
/* mask ? a : b, lane by lane; a mask is what a vector comparison gives. GCC makes one blend of `^`, not of `|`. */
static inline {v} select_{f}({i} mask, {v} a, {v} b)
{
    return ({v})((mask & ({i})a) ^ (~mask & ({i})b));
}

/*** absi ***/
/* The absolute value; that of the least integer wraps to itself. */
static inline {v} absi_{f}({v} x)
{
    const {u} sign = ({u})(x < 0);
    return ({v})((({u})x ^ sign) - sign);
}

/*** absi_scalar ***/
/* The absolute value; that of the least integer wraps to itself. */
static inline {v} absi_{f}({v} x)
{
    return x < 0 ? ({v})(0 - ({ue})x) : x;
}

/*** round ***/
static inline {v} round_{f}({v} x)
{
    {v} r = x;
    for (int lane = 0; lane < {n}; ++lane)
        r[lane] = ({e})round(x[lane]);
    return r;
}

/*** round_scalar ***/
static inline {v} round_{f}({v} x)
{
    return ({v})round(x);
}

/*** abs ***/
static inline {v} abs_{f}({v} x)
{
    return ({v})(({u})x & (({u}){0} + (({ue})-1 >> 1)));
}

/*** copysign ***/
static inline {v} copysign_{f}({v} magnitude, {v} sign)
{
    const {u} bit = ({u}){0} + (({ue})1 << ({bits} - 1));
    return ({v})((({u})magnitude & ~bit) | (({u})sign & bit));
}

/*** load_part ***/
/* The first lanes, fewer than all, and zeros. */
static inline {v} load_part_{f}(const {e} *p, int count)
{
{begin}    {v} v = {0};
    for (int lane = 0; lane < count; ++lane)
        v[lane] = p[lane];
    return v;
{end}}

/*** store_part ***/
/* The first lanes, fewer than all. */
static inline void store_part_{f}({e} *p, int count, {v} v)
{
    for (int lane = 0; lane < count; ++lane)
        p[lane] = v[lane];
}

/*** store_part_of_halves ***/
/* The first lanes, fewer than all. */
static inline void store_part_{f}({e} *p, int count, {v} v)
{
    const {h} low = __builtin_shufflevector(v, v, {low});
    const {h} high = __builtin_shufflevector(v, v, {high});
    if (count >= {n} / 2)
        store_{hf}(p, low);
    if (count > {n} / 2)
        store_part_{hf}(p + {n} / 2, count - {n} / 2, high);
    if (count < {n} / 2)
        store_part_{hf}(p, count, low);
}

/*** load_part_strided ***/
/* The first lanes, fewer than all, and zeros. */
static inline {v} load_part_strided_{f}(const {e} *p, «index» stride, int count)
{
    return ({v}){{strided_part}};
}

/*** store_part_strided ***/
/* The first lanes, fewer than all. */
static inline void store_part_strided_{f}({e} *p, «index» stride, int count, {v} v)
{
{scatter_part}
}

/*** quotient ***/
/* x / s where that is only rounded to a byte; r is 1 / s. Far from the bytes, and of infinity, it is as far. */
static inline {v} quotient_{f}({v} x, {e} s, {e} r)
{
#if defined(__AVX512F__) && {n} * {bits} == 512
    const {v} q = lesser_{f}(greater_{f}(x * r, splat_{f}(-65536)), splat_{f}(65536)), factor = splat_{f}(r);
    const {v} rest = __builtin_ia32_vfmaddps512_mask(-q, splat_{f}(s), x, -1, 4);
    return __builtin_ia32_vfmaddps512_mask(rest, factor, q, -1, 4);
#elif defined(__FMA__) && {n} * {bits} == 256
    const {v} q = lesser_{f}(greater_{f}(x * r, splat_{f}(-65536)), splat_{f}(65536)), factor = splat_{f}(r);
    return __builtin_ia32_vfmaddps256(__builtin_ia32_vfmaddps256(-q, splat_{f}(s), x), factor, q);
#else
    (void)r;
    return x / s;
#endif
}

/*** product_of_halves ***/
/* a * b of lanes whose values 16 bits with a sign hold, and that are not negative in one of both. */
static inline {v} product_of_halves_{f}({v} a, {v} b)
{
#if defined(__AVX512BW__) && {n} * {bits} == 512
    typedef short halves __attribute__((vector_size(64)));
    return ({v})__builtin_ia32_pmaddwd512_mask((halves)a, (halves)b, ({v}){0}, -1);
#elif defined(__AVX2__) && {n} * {bits} == 256
    typedef short halves __attribute__((vector_size(32)));
    return ({v})__builtin_ia32_pmaddwd256((halves)a, (halves)b);
#elif defined(__SSE2__) && {n} * {bits} == 128
    typedef short halves __attribute__((vector_size(16)));
    return ({v})__builtin_ia32_pmaddwd128((halves)a, (halves)b);
#else
    return a * b;
#endif
}
