/*** keyed ***/
/* A key and where it stands. */
typedef struct {
    {e} key, place;
} keyed_{f};

/*** next_below ***/
/* The first place from i on whose key is below the limit, or n. */
static inline int64_t next_below_{f}(const {e} *keys, int64_t i, int64_t n, {e} limit)
{
    for (; i + 16 <= n; i += 16) {
        {e} least = limit;
        MSC_ROLLED
        for (int k = 0; k < 16; ++k)
            least = keys[i + k] < least ? keys[i + k] : least;
        if (least < limit)
            break;
    }
    while (i < n && keys[i] >= limit)
        ++i;
    return i;
}

/*** insertion_argsort ***/
/* The places of the first keys in ascending order; of equal keys the first comes first. Few: each is inserted. */
static inline void insertion_argsort_{f}(const {e} *keys, int64_t n, int64_t *places, int64_t count, {e} *scratch)
{
    keyed_{f} *const best = (keyed_{f} *)scratch;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (kept == count && (i = next_below_{f}(keys, i, n, best[count - 1].key)) == n)
            break;
        int64_t to = kept < count ? kept++ : count - 1;
        for (; to > 0 && keys[i] < best[to - 1].key; --to)
            best[to] = best[to - 1];
        best[to] = (keyed_{f}){keys[i], ({e})i};
    }
    for (int64_t k = 0; k < kept; ++k)
        places[k] = best[k].place;
}

/*** radix_sort ***/
/* Keys in ascending order, equal ones as they stand: by each byte, from the last to the first. */
static inline void radix_sort_{f}(keyed_{f} *from, keyed_{f} *to, int64_t n, {ue} (*ends)[256])
{
    const {ue} sign = ({ue}){min};
    const unsigned bytes = sizeof({e});
    for (unsigned byte = 0; byte < bytes; ++byte)
        for (int value = 0; value < 256; ++value)
            ends[byte][value] = 0;
    for (int64_t i = 0; i < n; ++i)
        for (unsigned byte = 0; byte < bytes; ++byte)
            ++ends[byte][(({ue})from[i].key ^ sign) >> 8 * byte & 255];
    for (unsigned byte = 0; byte < bytes; ++byte) {
        {ue} end = 0;
        for (int value = 0; value < 256; ++value) {
            const {ue} first = end;
            end += ends[byte][value];
            ends[byte][value] = first;
        }
        for (int64_t i = 0; i < n; ++i)
            to[ends[byte][(({ue})from[i].key ^ sign) >> 8 * byte & 255]++] = from[i];
        keyed_{f} *const sorted = to;
        to = from;
        from = sorted;
    }
}

/*** radix_argsort ***/
/* The places of the first keys in ascending order; of equal keys the first comes first. Many: keys that may be among
   them are gathered, and sorted whenever there is no room for more. */
static inline void radix_argsort_{f}(
    const {e} *keys, int64_t n, int64_t *places, int64_t count, {e} *scratch, int64_t room)
{
    keyed_{f} *const best = (keyed_{f} *)scratch;
    {ue} (*const ends)[256] = ({ue} (*)[256])(scratch + 4 * room);
    room = room < n ? room : n;
    count = count < n ? count : n;
    int64_t i = 0;
    for (; i < room; ++i)
        best[i] = (keyed_{f}){keys[i], ({e})i};
    radix_sort_{f}(best, best + room, room, ends);
    while (i < n) {
        const {e} limit = best[count - 1].key;
        int64_t kept = count;
        for (; (i = next_below_{f}(keys, i, n, limit)) < n && kept < room; ++i)
            best[kept++] = (keyed_{f}){keys[i], ({e})i};
        radix_sort_{f}(best, best + room, kept, ends);
    }
    for (int64_t k = 0; k < count; ++k)
        places[k] = best[k].place;
}
