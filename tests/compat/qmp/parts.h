/* The parts of QMP's test. */
#pragma once

#include "compat/qmp.h"

/* Initialises QMP. */
void begin(int argc, char** argv);

/* machine.c: nodes, topologies, lattices. */
void machine(void);
void topology(void);
void layout(void);

/* messages.c: messages between nodes. */
void halo(int axis, int ints);
void all_pairs(void);
void long_messages(void);
void layouts(void);

/* reductions.c: collective operations. */
void global_operations(QMP_comm_t comm, int me, int n);
void global_of_default(void);
void nested_reduction(void);
void ordered_reduction(void);
void halves(void);
