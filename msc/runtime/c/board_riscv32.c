/* Start-up for a RISC-V of 32 bits that QEMU emulates: memory, retired instructions as the counter, semihosting for
   texts. An example: on a chip, take its vendor's. */
#include "board.h"

#include <stddef.h>
#include <string.h>

#include "board_stack.h"

extern uint32_t board_bss[], board_bss_end[];
int main(void);

static int board_host(int operation, const void *argument)
{
    register int a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(".option push\n\t.option norvc\n\t.balign 16\n\tslli zero, zero, 0x1f\n\tebreak\n\t"
                     "srai zero, zero, 7\n\t.option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
}

void board_text(const char *text)
{
    board_host(4, text);
}

void board_exit(int status)
{
    const uint32_t arguments[] = {status ? 0x20023 : 0x20026, (uint32_t)status};
    board_host(0x20, arguments);
    for (;;)
        ;
}

uint64_t board_ticks(void)
{
    uint32_t high, low, again;
    do {
        __asm__ volatile(".option arch, +zicsr\n\tcsrr %0, minstreth" : "=r"(high));
        __asm__ volatile("csrr %0, minstret" : "=r"(low));
        __asm__ volatile("csrr %0, minstreth" : "=r"(again));
    } while (high != again);
    return (uint64_t)high << 32 | low;
}

void board_main(void)
{
    memset(board_bss, 0, (size_t)((char *)board_bss_end - (char *)board_bss));
    board_exit(main());
}

__asm__(".section .vectors, \"ax\"\n"
        ".globl board_reset\n"
        "board_reset:\n"
        "    la sp, board_stack_end\n"
        "    j board_main\n"
        "    .text\n");
