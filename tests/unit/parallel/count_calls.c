/* Counts what a program passes to MPI: a library to preload, whose functions MPI offers for that. */
#include <mpi.h>
#include <stdio.h>

static void count(const char *call, int elements, MPI_Datatype type)
{
    int size, rank;
    char name[32];
    PMPI_Type_size(type, &size);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "calls%d.txt", rank);
    FILE *const file = fopen(name, "a");
    fprintf(file, "%s %ld\n", call, (long)elements * size);
    fclose(file);
}

int MPI_Allreduce(const void *x, void *y, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
    count("MPI_Allreduce", n, t);
    return PMPI_Allreduce(x, y, n, t, op, c);
}

int MPI_Allgather(const void *x, int n, MPI_Datatype t, void *y, int m, MPI_Datatype u, MPI_Comm c)
{
    count("MPI_Allgather", n, t);
    return PMPI_Allgather(x, n, t, y, m, u, c);
}

int MPI_Alltoall(const void *x, int n, MPI_Datatype t, void *y, int m, MPI_Datatype u, MPI_Comm c)
{
    count("MPI_Alltoall", n, t);
    return PMPI_Alltoall(x, n, t, y, m, u, c);
}

int MPI_Reduce_scatter_block(const void *x, void *y, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c)
{
    count("MPI_Reduce_scatter_block", n, t);
    return PMPI_Reduce_scatter_block(x, y, n, t, op, c);
}

int MPI_Bcast(void *x, int n, MPI_Datatype t, int root, MPI_Comm c)
{
    count("MPI_Bcast", n, t);
    return PMPI_Bcast(x, n, t, root, c);
}

int MPI_Sendrecv(const void *x, int n, MPI_Datatype t, int to, int a, void *y, int m, MPI_Datatype u, int from, int b,
                 MPI_Comm c, MPI_Status *s)
{
    count("MPI_Sendrecv", n, t);
    return PMPI_Sendrecv(x, n, t, to, a, y, m, u, from, b, c, s);
}
