/*** mpi_started ***/
static void mpi_end_{f}(void)
{
    int ended = 0;
    MPI_Finalized(&ended);
    if (!ended)
        MPI_Finalize();
}

/* MPI runs: a program that has not started it does so at its first collective, and ends it when it ends. */
static inline void mpi_started_{f}(void)
{
    int started = 0;
    MPI_Initialized(&started);
    if (started)
        return;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS || atexit(mpi_end_{f}) != 0) {
        fprintf(stderr, "MPI does not start\n");
        abort();
    }
}

/*** mpi_group ***/
/* The communicator of this rank's group, made at its first use and kept; MPI_COMM_NULL if it is in none. */
static MPI_Comm mpi_group_{f}(int groups, int size, const int *ranks)
{
    static struct known {
        int groups, size, *ranks;
        MPI_Comm group;
        struct known *next;
    } *first = NULL;
    mpi_started_{f}();
    const size_t bytes = sizeof(int) * (size_t)(groups * size);
    for (const struct known *k = first; k != NULL; k = k->next)
        if (k->groups == groups && k->size == size && memcmp(k->ranks, ranks, bytes) == 0)
            return k->group;
    int rank, world, own = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    for (int i = 0; i < groups * size; ++i) {
        if (ranks[i] >= world) {
            fprintf(stderr, "the program needs rank %d, but only %d run: mpirun -n %d\n", ranks[i], world, ranks[i] + 1);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        own = ranks[i] == rank ? i / size : own;
    }
    struct known *const made = malloc(sizeof *made);
    int *const kept = malloc(bytes);
    if (made == NULL || kept == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    memcpy(kept, ranks, bytes);
    *made = (struct known){groups, size, kept, MPI_COMM_NULL, first};
    if (own >= 0) {
        MPI_Group all, part;
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_incl(all, size, ranks + own * size, &part);
        MPI_Comm_create_group(MPI_COMM_WORLD, part, 0, &made->group);
        MPI_Group_free(&part);
        MPI_Group_free(&all);
    }
    first = made;
    return made->group;
}

/*** mpi_type ***/
static inline MPI_Datatype mpi_type_{f}(void)
{
    return _Generic(({e})0, float: MPI_FLOAT, double: MPI_DOUBLE, int8_t: MPI_INT8_T, uint8_t: MPI_UINT8_T,
                    int16_t: MPI_INT16_T, uint16_t: MPI_UINT16_T, int32_t: MPI_INT32_T, uint32_t: MPI_UINT32_T,
                    int64_t: MPI_INT64_T, uint64_t: MPI_UINT64_T, default: MPI_BYTE);
}

/*** mpi_reduction ***/
static inline MPI_Op mpi_reduction_{f}(int word)
{
    return word == 0 ? MPI_SUM : word == 1 ? MPI_PROD : word == 2 ? MPI_MAX : MPI_MIN;
}

/*** msc_all_reduce ***/
static inline void msc_all_reduce_{f}(const {e} *x, int64_t n, {e} *y, int64_t m, int word, int groups, int size,
                                      const int *ranks)
{
    (void)m;
    const MPI_Comm group = mpi_group_{f}(groups, size, ranks);
    if (group != MPI_COMM_NULL)
        MPI_Allreduce(x, y, (int)n, mpi_type_{f}(), mpi_reduction_{f}(word), group);
}

/*** msc_reduce_scatter ***/
static inline void msc_reduce_scatter_{f}(const {e} *x, int64_t n, {e} *y, int64_t m, int word, int groups, int size,
                                          const int *ranks)
{
    (void)n;
    const MPI_Comm group = mpi_group_{f}(groups, size, ranks);
    if (group != MPI_COMM_NULL)
        MPI_Reduce_scatter_block(x, y, (int)m, mpi_type_{f}(), mpi_reduction_{f}(word), group);
}

/*** msc_all_gather ***/
static inline void msc_all_gather_{f}(const {e} *x, int64_t n, {e} *y, int64_t m, int groups, int size,
                                      const int *ranks)
{
    (void)m;
    const MPI_Comm group = mpi_group_{f}(groups, size, ranks);
    const int bytes = (int)(n * (int64_t)sizeof *x);
    if (group != MPI_COMM_NULL)
        MPI_Allgather(x, bytes, MPI_BYTE, y, bytes, MPI_BYTE, group);
}

/*** msc_all_to_all ***/
static inline void msc_all_to_all_{f}(const {e} *x, int64_t n, {e} *y, int64_t m, int groups, int size,
                                      const int *ranks)
{
    (void)m;
    const MPI_Comm group = mpi_group_{f}(groups, size, ranks);
    const int bytes = (int)(n / size * (int64_t)sizeof *x);
    if (group != MPI_COMM_NULL)
        MPI_Alltoall(x, bytes, MPI_BYTE, y, bytes, MPI_BYTE, group);
}

/*** msc_broadcast ***/
static inline void msc_broadcast_{f}(const {e} *x, int64_t n, {e} *y, int64_t m, int root, int groups, int size,
                                     const int *ranks)
{
    (void)m;
    const MPI_Comm group = mpi_group_{f}(groups, size, ranks);
    memcpy(y, x, (size_t)n * sizeof *x);
    if (group != MPI_COMM_NULL)
        MPI_Bcast(y, (int)(n * (int64_t)sizeof *x), MPI_BYTE, root, group);
}

/*** msc_all_slice ***/
static inline void msc_all_slice_{f}(const {e} *x, int64_t n, {e} *y, int64_t m, int groups, int size,
                                     const int *ranks)
{
    (void)n;
    int rank, place = 0;
    mpi_started_{f}();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < groups * size; ++i)
        place = ranks[i] == rank ? i % size : place;
    memcpy(y, x + m * place, (size_t)m * sizeof *x);
}

/*** msc_send_recv ***/
static inline void msc_send_recv_{f}(const {e} *x, int64_t n, {e} *y, int64_t m, int pairs, int size, const int *ranks)
{
    int rank, world, source = MPI_PROC_NULL, to = MPI_PROC_NULL;
    mpi_started_{f}();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    for (int i = 0; i < pairs * size; i += 2) {
        if (ranks[i] >= world || ranks[i + 1] >= world)
            MPI_Abort(MPI_COMM_WORLD, 3);
        to = ranks[i] == rank ? ranks[i + 1] : to;
        source = ranks[i + 1] == rank ? ranks[i] : source;
    }
    const int bytes = (int)(n * (int64_t)sizeof *x);
    memset(y, 0, (size_t)m * sizeof *y);
    MPI_Sendrecv(x, bytes, MPI_BYTE, to, 0, y, bytes, MPI_BYTE, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
