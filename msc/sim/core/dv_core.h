/* What a kernel and the simulator share: an instruction, and the ring in which a kernel leaves instructions. */
#ifndef DV_CORE_H
#define DV_CORE_H
#include <stdint.h>

enum { DV_OPERANDS = 4, DV_PARAMETERS = 20, DV_RING = 512, DV_ARGUMENTS = 120 };

/* One instruction: operand addresses are byte offsets in their memory, those of GM are virtual (see dv_sim.h). */
struct dv_instr {
    uint16_t op;
    uint8_t type[DV_OPERANDS];
    uint32_t line; /* of the kernel's C */
    int64_t operand[DV_OPERANDS];
    int64_t p[DV_PARAMETERS];
};

/* A core's instructions on their way to the simulator; `full` takes them all and returns when there is room again. */
struct dv_ring {
    struct dv_instr slot[DV_RING];
    uint32_t count;
    void (*full)(struct dv_ring *);
    int64_t (*load)(struct dv_ring *, const struct dv_instr *); /* an index: see dv_load_index */
    void (*stop)(struct dv_ring *, uint32_t line); /* too many iterations: does not return */
    int64_t *budget; /* how many iterations and instructions all cores may still take */
    int64_t block, blocks; /* get_block_idx(), get_block_num() */
    int64_t is_cube, is_vector, sub_block; /* which parts of the program this core runs */
};
#endif
