/* Runs the model on the inputs in golden.h and compares its outputs with those there. It prints the instructions or ticks
   of the board's counter and the stack that a call took; with -DSELFTEST_KERNELS also the ticks of each kernel. */
#include <stddef.h>
#include <string.h>

#include "@NAME@.h"
#include "board.h"
#include "golden.h"

static @MACRO@_STATIC_WORKSPACE(selftest_workspace);

static void number(const char *name, uint64_t value)
{
    char digits[24];
    size_t first = sizeof digits - 1;
    digits[first] = 0;
    do {
        digits[--first] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value);
    board_text(name);
    board_text(" ");
    board_text(&digits[first]);
    board_text("\n");
}

#ifdef SELFTEST_KERNELS
static uint64_t selftest_starts[@MACRO@_KERNELS + 1];

void selftest_hook(int kernel)
{
    selftest_starts[kernel] = board_ticks();
}

static void kernels(void)
{
    static const char *const names[] = {@MACRO@_KERNEL_NAMES};
    for (int k = 0; k < @MACRO@_KERNELS; ++k)
        number(names[k], selftest_starts[k + 1] - selftest_starts[k]);
}
#endif

@COMPARE@
int main(void)
{
@STATES@    board_paint_stack();
    const uint64_t start = board_ticks();
    const int status = @CALL@;
    const uint64_t ticks = board_ticks() - start;
    const uint32_t stack = board_used_stack();
    if (status) {
        number("FAIL: @NAME@: the model returned", (uint64_t)status);
        return 1;
    }
@CHECKS@    number("ticks", ticks);
    number("stack", stack);
#ifdef SELFTEST_KERNELS
    kernels();
#endif
    board_text("PASS: @NAME@\n");
    return 0;
}
