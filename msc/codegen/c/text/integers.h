/*** power ***/
/* By squaring, wrapping. A negative power is the truncated reciprocal: 0 but for 1 and -1. */
static inline {v} ipow_{f}({v} a, {v} b)
{
    if (b < 0)
        return a == 1 ? ({v})1 : a == -1 ? ({v})((b & 1) != 0 ? -1 : 1) : ({v})0;
    {ue} power = 1;
    uint64_t factor = (uint64_t)a;
    for (; b != 0; b = ({v})(b / 2)) {
        if ((b & 1) != 0)
            power = ({ue})(power * factor);
        factor *= factor;
    }
    return ({v})power;
}

/*** power_lanes ***/
/* By squaring, wrapping. A negative power is the truncated reciprocal: 0 but for 1 and -1. */
static inline {v} ipow_{f}({v} a, {v} b)
{
    {v} result = a;
    for (int lane = 0; lane < {n}; ++lane) {
        const {e} base = a[lane];
        {e} exponent = b[lane];
        {ue} power = 1;
        uint64_t factor = (uint64_t)base;
        for (; exponent > 0; exponent = ({e})(exponent / 2)) {
            if ((exponent & 1) != 0)
                power = ({ue})(power * factor);
            factor *= factor;
        }
        const {e} reciprocal = base == 1 ? ({e})1 : base == -1 ? ({e})((b[lane] & 1) != 0 ? -1 : 1) : ({e})0;
        result[lane] = b[lane] < 0 ? reciprocal : ({e})power;
    }
    return result;
}
