/* Runs the model on inputs from .npy files, or on made-up ones, and prints what comes out.

     program [--help] [NAME=FILE.npy ...]

   Reads NumPy's format, version 1 to 3, C order, little-endian. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_table.h"
#include "tensor.h"

#define TENSORS (MSC_INPUTS + MSC_OUTPUTS)

static int fail(const char *what, const char *name)
{
    fprintf(stderr, "%s: %s: %s\n", MSC_NAME, what, name);
    return 1;
}

/* NumPy's name of a type; bf16, which NumPy lacks, is stored as its bits. */
static const char *npy_type(const char *dtype)
{
    static const char *const names[][2] = {
        {"f16", "f2"}, {"bf16", "u2"}, {"f32", "f4"}, {"f64", "f8"},  {"i1", "b1"},   {"i8", "i1"},   {"i16", "i2"},
        {"i32", "i4"}, {"i64", "i8"},  {"ui8", "u1"}, {"ui16", "u2"}, {"ui32", "u4"}, {"ui64", "u8"},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        if (strcmp(names[k][0], dtype) == 0)
            return names[k][1];
    return "?";
}

/* Whether the header's 'shape': (2, 3) is the tensor's. */
static int same_shape(const char *header, const struct msc_tensor *tensor)
{
    const char *p = strstr(header, "'shape': (");
    if (!p)
        return 0;
    p += strlen("'shape': (");
    for (int k = 0; k < tensor->rank; ++k) {
        char *end;
        if (strtoumax(p, &end, 10) != tensor->shape[k] || end == p)
            return 0;
        p = end + strspn(end, ", ");
    }
    return *p == ')';
}

/* What is wrong with a header, or NULL. */
static const char *header_fault(const char *header, const struct msc_tensor *tensor)
{
    const char *descr = strstr(header, "'descr': '");
    if (!descr || strncmp(descr + strlen("'descr': '") + 1, npy_type(tensor->dtype), 2) != 0)
        return "its elements are of another type";
    if (descr[strlen("'descr': '")] == '>')
        return "its bytes are big-endian";
    if (!same_shape(header, tensor))
        return "it has another shape";
    return strstr(header, "'fortran_order': False") ? NULL : "it is in Fortran order (numpy.ascontiguousarray changes that)";
}

static const char *read_open_npy(FILE *file, const struct msc_tensor *tensor, void *data)
{
    unsigned char magic[12];
    static char header[4096];
    if (fread(magic, 1, 10, file) != 10 || memcmp(magic, "\x93NUMPY", 6) != 0 ||
        (magic[6] != 1 && fread(magic + 10, 1, 2, file) != 2))
        return "it is no .npy file";
    size_t length = magic[8] + 256u * magic[9];
    if (magic[6] > 1)
        length += 65536u * magic[10] + 16777216u * magic[11];
    if (length >= sizeof header || fread(header, 1, length, file) != length)
        return "it is no .npy file";
    header[length] = 0;
    const char *const fault = header_fault(header, tensor);
    if (fault)
        return fault;
    return fread(data, tensor->element_bytes, tensor->elements, file) == tensor->elements ? NULL : "it is too short";
}

/* What is wrong with the file, or NULL. */
static const char *read_npy(const char *path, const struct msc_tensor *tensor, void *data)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return strerror(errno);
    const char *const fault = read_open_npy(file, tensor, data);
    fclose(file);
    return fault;
}

/* Name, element type and shape. */
static void print_tensor(FILE *file, const struct msc_tensor *tensor)
{
    fprintf(file, "%s %s [", tensor->name, tensor->dtype);
    for (int k = 0; k < tensor->rank; ++k)
        fprintf(file, "%s%zu", k ? ", " : "", tensor->shape[k]);
    fprintf(file, "]");
}

static void print_inputs(FILE *file)
{
    for (int k = 0; k < MSC_INPUTS; ++k) {
        fprintf(file, "  ");
        print_tensor(file, &msc_tensors[k]);
        fprintf(file, "\n");
    }
}

static int help(const char *program)
{
    printf("usage: %s [NAME=FILE.npy ...]\n\n", program);
    printf("Runs the model %s once and prints its outputs. Inputs that are not given are made up.\n", MSC_NAME);
    printf("--help: shows the inputs that this program takes:\n");
    print_inputs(stdout);
    return 0;
}

/* Numbers in [0, 1) for f32 and f64, small integers for the rest; the same on every machine. */
static void make_up(const struct msc_tensor *tensor, void *data)
{
    uint32_t state = 1;
    for (size_t k = 0; k < tensor->elements; ++k) {
        state = state * 1664525u + 1013904223u;
        const double unit = (state >> 8) / 16777216.0;
        unsigned char *const element = (unsigned char *)data + k * tensor->element_bytes;
        if (strcmp(tensor->dtype, "f32") == 0) {
            const float value = (float)unit;
            memcpy(element, &value, sizeof value);
        } else if (strcmp(tensor->dtype, "f64") == 0) {
            memcpy(element, &unit, sizeof unit);
        } else {
            memset(element, 0, tensor->element_bytes);
            if (tensor->dtype[0] != 'f' && tensor->dtype[0] != 'b')
                element[0] = (unsigned char)(state >> 31);
        }
    }
}

static void print_summary(const struct msc_tensor *tensor, const void *data)
{
    print_tensor(stdout, tensor);
    printf(":");
    for (size_t k = 0; k < tensor->elements && k < 16; ++k)
        printf(" %.9g", tensor_number(tensor, data, k));
    printf("%s\n", tensor->elements > 16 ? " ..." : "");
}

static int fill_inputs(int argc, char **argv, void *const *tensors)
{
    for (int k = 0; k < MSC_INPUTS; ++k)
        make_up(&msc_tensors[k], tensors[k]);
    for (int k = 1; k < argc; ++k) {
        const char *const equals = strchr(argv[k], '=');
        int found = 0;
        for (int t = 0; equals && t < MSC_INPUTS; ++t) {
            const char *const name = msc_tensors[t].name;
            if (strlen(name) != (size_t)(equals - argv[k]) || strncmp(name, argv[k], strlen(name)) != 0)
                continue;
            found = 1;
            const char *const fault = read_npy(equals + 1, &msc_tensors[t], tensors[t]);
            if (fault) {
                fprintf(stderr, "%s: cannot use '%s': %s; the input is ", MSC_NAME, equals + 1, fault);
                print_tensor(stderr, &msc_tensors[t]);
                fprintf(stderr, "\n");
                return 1;
            }
        }
        if (!found) {
            fprintf(stderr, "%s: '%s' is not INPUT=FILE.npy; the inputs are\n", MSC_NAME, argv[k]);
            print_inputs(stderr);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    for (int k = 1; k < argc; ++k)
        if (strcmp(argv[k], "--help") == 0 || strcmp(argv[k], "-h") == 0)
            return help(argv[0]);
    void *tensors[TENSORS + 1];
    void *const workspace = tensor_allocate(MSC_WORKSPACE_BYTES);
    int status = workspace ? 0 : fail("out of memory", "workspace");
    for (int k = 0; k < TENSORS; ++k) {
        tensors[k] = tensor_allocate(msc_tensors[k].element_bytes * msc_tensors[k].elements);
        if (!tensors[k])
            status = fail("out of memory", msc_tensors[k].name);
    }
    if (!status)
        status = fill_inputs(argc, argv, tensors);
    if (!status && msc_run(tensors, workspace))
        status = fail("the model reported an error", MSC_NAME);
    for (int k = MSC_INPUTS; !status && k < TENSORS; ++k)
        print_summary(&msc_tensors[k], tensors[k]);
    for (int k = 0; k < TENSORS; ++k)
        free(tensors[k]);
    free(workspace);
    return status;
}
