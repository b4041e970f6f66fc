/* Start-up for a Cortex-M that QEMU emulates: vectors, memory, SysTick as the counter, semihosting for texts. An example:
   on a chip, take its vendor's. */
#include "board.h"

#include <string.h>

#include "board_stack.h"

extern uint32_t board_stack_end[], board_bss[], board_bss_end[];
int main(void);

static volatile uint32_t board_wraps;

static int board_host(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_text(const char *text)
{
    board_host(4, text);
}

void board_exit(int status)
{
    board_host(0x18, (const void *)(status ? 0x20023 : 0x20026));
    for (;;)
        ;
}

static void board_fault(void)
{
    board_text("FAIL: a fault of the processor\n");
    board_exit(1);
}

static void board_tick(void)
{
    ++board_wraps;
}

uint64_t board_ticks(void)
{
    volatile uint32_t *const systick = (volatile uint32_t *)0xe000e010;
    uint32_t wraps, value;
    do {
        wraps = board_wraps;
        value = systick[2];
    } while (wraps != board_wraps);
    return ((uint64_t)wraps << 24) + (0xffffff - value);
}

void board_reset(void)
{
    volatile uint32_t *const systick = (volatile uint32_t *)0xe000e010;
    memset(board_bss, 0, (size_t)((char *)board_bss_end - (char *)board_bss));
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* the FPU */
    __asm__ volatile("dsb\n\tisb");
#endif
    systick[1] = 0xffffff;
    systick[2] = 0;
    systick[0] = 7;
    board_exit(main());
}

__attribute__((section(".vectors"), used)) static const void *const board_vectors[16] = {
    board_stack_end, board_reset, board_fault, board_fault, board_fault, board_fault, board_fault, board_fault,
    0, 0, 0, board_fault, board_fault, 0, board_fault, board_tick,
};
