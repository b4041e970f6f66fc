/* Measures the stack by a pattern that is there before, and gone where the stack was. */
#define BOARD_STACK 0x8000
#define BOARD_PATTERN 0xa5a5a5a5u
/* Bytes next to the caller's frame that are not looked at, and count as used. */
#define BOARD_NEAR 32

static uint32_t *board_top;

void board_paint_stack(void)
{
    board_top = (uint32_t *)((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)7);
    for (volatile uint32_t *word = board_top - BOARD_STACK / 4; word < board_top - BOARD_NEAR / 4; ++word)
        *word = BOARD_PATTERN;
}

uint32_t board_used_stack(void)
{
    const volatile uint32_t *word = board_top - BOARD_STACK / 4;
    while (word < board_top - BOARD_NEAR / 4 && *word == BOARD_PATTERN)
        ++word;
    return (uint32_t)(board_top - word) * 4;
}
