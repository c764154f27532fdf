/* One channel: a sender, a receiver, SLOTS slots of CHUNKS chunks, USES uses. Both sleep when they must wait.
 * Checked: every value arrives once, in order, and is still there when it is read; nobody sleeps for ever.
 *
 * Broken on purpose by -DRELEASE_FIRST, -DIGNORE_RELEASED, -DFLAG_FIRST, -DFLAG_RELAXED (with WEAK), -DREAD_EARLY,
 * -DNO_MEMBARRIER, -DANNOUNCE_LATE, -DLOST_WITHOUT_POLLING (with DEATH), or by a PERIOD longer than the ring.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifndef USES
#define USES 5
#endif
#ifndef PERIOD
#define PERIOD 1 /* `released` is stored after each PERIOD-th use */
#endif

#define DATA(slot, chunk) ((slot) * CHUNKS + (chunk))
#define ARRIVED(slot) (SLOTS * CHUNKS + (slot))
#define RELEASED (SLOTS * CHUNKS + SLOTS)
#define CELLS (RELEASED + 1)

#define WHOLE 7
#define FLAG(use, chunks) ((use) * 8 + (chunks))
#define VALUE(use, chunk) ((use) * CHUNKS + (chunk) + 1)

#define SENDER 0
#define RECEIVER 1
#define FIRST_MORTAL 0
#define MORTALS 2
#define SOMEBODY_DEAD(me) dead[1 - (me)]

#include "machine.pml"

#ifdef FLAG_RELAXED
#define FLAG_ORDER 0
#else
#define FLAG_ORDER 1
#endif

inline write_chunk() { store(SENDER, DATA(slot, chunk), VALUE(use + 1, chunk), 0) }
inline write_flag() {
  store(SENDER, ARRIVED(slot), FLAG(use + 1, (chunk + 1 == CHUNKS -> WHOLE : chunk + 1)), FLAG_ORDER)
}

active proctype sender() {
  byte use, slot, chunk, released_seen;
  bool found_dead;
  MORTAL_BEGIN
  do
  :: use == USES -> goto done
  :: else ->
#ifndef IGNORE_RELEASED
     if
     :: released_seen + SLOTS > use
     :: else -> WAIT_UNTIL(SENDER, released_seen = memory[RELEASED], released_seen + SLOTS > use)
     fi;
#endif
     do
     :: chunk == CHUNKS -> break
     :: else ->
#ifdef FLAG_FIRST
        write_flag();
        write_chunk();
#else
        write_chunk();
        write_flag();
#endif
        ring_if_sleeping(SENDER, RECEIVER);
        chunk++
     od;
     chunk = 0;
     use++;
     slot = (slot + 1) % SLOTS
  od;
lost:
  assert(dead[RECEIVER] && memory[RELEASED] + SLOTS <= use);
done:
  skip
  MORTAL_END(SENDER)
}

inline release_slot() {
  if
  :: (use + 1) % PERIOD == 0 ->
     store(RECEIVER, RELEASED, use + 1, 1);
     ring_if_sleeping(RECEIVER, SENDER)
  :: else
  fi
}

active proctype receiver() {
  byte use, slot, chunk, arrived, got;
  bool found_dead;
  MORTAL_BEGIN
  do
  :: use == USES -> goto done
  :: else ->
#ifdef RELEASE_FIRST
     WAIT_UNTIL(RECEIVER, arrived = memory[ARRIVED(slot)], arrived >= FLAG(use + 1, 1));
     release_slot();
#endif
     do
     :: chunk == CHUNKS -> break
     :: else ->
#ifdef READ_EARLY
        got = memory[DATA(slot, chunk)];
#endif
        WAIT_UNTIL(RECEIVER, arrived = memory[ARRIVED(slot)],
                   arrived >= FLAG(use + 1, (chunk + 1 == CHUNKS -> WHOLE : chunk + 1)));
#ifndef READ_EARLY
        got = memory[DATA(slot, chunk)];
#endif
        assert(got == VALUE(use + 1, chunk));
        d_step {
          got = 0;
          arrived = 0;
          chunk++
        }
     od;
     chunk = 0;
#ifndef RELEASE_FIRST
     release_slot();
#endif
     use++;
     slot = (slot + 1) % SLOTS
  od;
lost:
  /* Who died had not sent it: a message that is there is received, whatever became of its sender. */
  assert(dead[SENDER] && memory[ARRIVED(slot)] < FLAG(use + 1, (chunk + 1 == CHUNKS -> WHOLE : chunk + 1)));
done:
  skip
  MORTAL_END(RECEIVER)
}
