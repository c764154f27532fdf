/* One rank that waits for several things on its one doorbell: uses 1 to USES of a flag from each of two peers, in whatever
 * order they come. With -DTWO_THREADS the rank has two threads, each waiting for one of the peers on the same bell.
 * Checked: nothing is slept through. With -DDEATH one of the peers may die at any moment.
 *
 * Broken on purpose by -DNO_MEMBARRIER, -DANNOUNCE_LATE, -DCHECK_ONE (only one of the conditions is checked before
 * sleeping), -DWAKE_ONE (with TWO_THREADS: a ring wakes one thread only), -DLOST_WITHOUT_POLLING (with DEATH).
 */
#ifndef USES
#define USES 2
#endif
#define CELLS 2

#ifdef TWO_THREADS
#define THREADS 4
#define RANKS 3
#define RANK_OF(thread) (thread == 3 -> 0 : thread)
#define RING(rank) d_step { rung[0] = true; rung[3] = true }
#ifdef WAKE_ONE
#define WAKE(rank) \
  atomic { \
    if \
    :: asleep[3] -> asleep[3] = false \
    :: else -> asleep[0] = false \
    fi \
  }
#else
#define WAKE(rank) d_step { asleep[0] = false; asleep[3] = false }
#endif
#else
#define THREADS 3
#endif

#define FIRST_MORTAL 1
#define MORTALS 2
#define SOMEBODY_DEAD(me) (dead[1] || dead[2])

#include "machine.pml"

#define POLL here1 = memory[0]; here2 = memory[1]
#ifdef CHECK_ONE
#define SOMETHING (here1 > taken1)
#else
#define SOMETHING (here1 > taken1 || here2 > taken2)
#endif

inline take() {
  do
  :: here1 > taken1 -> taken1++
  :: here2 > taken2 -> taken2++
  :: else -> break
  od
}

#ifndef TWO_THREADS
active proctype waiter() {
  byte here1, here2, taken1, taken2;
  bool found_dead;
  do
  :: taken1 == USES && taken2 == USES -> goto done
  :: else ->
     /* What it does when something is there: takes it. A flag may have grown by more than one meanwhile. */
     POLL;
     take();
     if
     :: taken1 == USES && taken2 == USES
     :: else -> WAIT_UNTIL(0, POLL, SOMETHING)
     fi
  od;
lost:
  /* What the dead had sent is taken. */
  assert((dead[1] && memory[0] == taken1) || (dead[2] && memory[1] == taken2));
done:
  skip
}
#else
proctype waiter(byte me; byte cell) {
  byte here, taken;
  bool found_dead;
  do
  :: taken == USES -> break
  :: else -> WAIT_UNTIL(me, here = memory[cell], here > taken); taken = here
  od;
lost:
  assert(taken == USES)
}
init {
  atomic {
    run waiter(0, 0);
    run waiter(3, 1)
  }
}
#endif

proctype writer(byte me; byte cell) {
  byte use;
  MORTAL_BEGIN
  do
  :: use == USES -> break
  :: else ->
     use++;
     store(me, cell, use, 1);
     ring_if_sleeping(me, 0)
  od
  MORTAL_END(me)
}

active proctype start() {
  atomic {
    run writer(1, 0);
    run writer(2, 1)
  }
}
