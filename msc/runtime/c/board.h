/* What the self-test needs of a computer without an operating system. */
#include <stdint.h>

/* A text for the terminal. */
void board_text(const char *text);
/* The end of the program; 0: all is well. */
void board_exit(int status);
/* Ticks of a counter since the start. */
uint64_t board_ticks(void);
/* Fill the stack below the caller with a pattern; then the bytes of it that were used. */
void board_paint_stack(void);
uint32_t board_used_stack(void);
