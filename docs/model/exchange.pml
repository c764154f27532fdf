/* Two ranks exchange FRAGMENTS fragments RUNS times the way a plan does: start() packs as far as slots are free and never
 * waits; finish() packs the rest and unpacks, whichever can be done, and sleeps only when neither can
 * (Plan::Impl::for_each_movable).
 * With -DIN_PLACE what is sent is where the other's data goes: fragment f is packed before fragment f is unpacked.
 * -DBEFORE=n: the channels have been used n times already.
 * Checked: no deadlock; every fragment arrives in its place; with -DNEVER_WAITS also that start() finds all slots free.
 *
 * Broken on purpose by -DSEND_ALL_FIRST (finish() waits for slots before it unpacks), -DUNPACK_EAGERLY (with IN_PLACE: the
 * order of packing and unpacking is not kept), -DUNPACK_FIRST (with IN_PLACE: fragment f is unpacked before it is packed),
 * -DWAIT_FOR_ARRIVAL_ONLY (a free slot is not among the conditions of sleep), -DNO_MEMBARRIER, and NEVER_WAITS by one slot.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef FRAGMENTS
#define FRAGMENTS 3
#endif
#ifndef RUNS
#define RUNS 2
#endif
#ifndef BEFORE
#define BEFORE 0
#endif
#ifndef PERIOD
#define PERIOD 1 /* `released` is stored after each PERIOD-th use */
#endif

/* What rank `from` sends lies in the slots of ring `from`. A fragment is one word that holds its flag and its value:
 * that data and flag may travel apart is the matter of channel.pml, and leaving it out keeps this model small. */
#define SLOT(from, slot) ((from) * (SLOTS + 1) + (slot))
#define RELEASED(from) SLOT(from, SLOTS)
#define CELLS (2 * (SLOTS + 1))
#define FRAGMENT(use, value) ((use) * 16 + (value))
#define USE_OF(word) ((word) / 16)
#define VALUE_OF(word) ((word) % 16)

#define FIRST_MORTAL 0
#define MORTALS 2
#define SOMEBODY_DEAD(me) dead[1 - (me)]

#include "machine.pml"

typedef Array {
  byte block[FRAGMENTS]
};
Array array[2];

/* At most 15: what `rank` has to send at first, or (not in place) in any run. */
#define VALUE(rank, fragment) ((rank) * FRAGMENTS + (fragment) + 1)

#define UNSENT (packed < FRAGMENTS)
#define FREE (released_seen + SLOTS > sent)
#ifdef IN_PLACE
#if defined(UNPACK_EAGERLY)
#define MAY_UNPACK (unpacked < FRAGMENTS)
#elif defined(UNPACK_FIRST)
#define MAY_UNPACK (unpacked < FRAGMENTS)
#undef UNSENT
#define UNSENT (packed < FRAGMENTS && packed < unpacked)
#else
#define MAY_UNPACK (unpacked < FRAGMENTS && unpacked < packed)
#endif
#else
#define MAY_UNPACK (unpacked < FRAGMENTS)
#endif
#define HERE (USE_OF(arrived) > got)

#ifdef WAIT_FOR_ARRIVAL_ONLY
#define CAN_GO_ON (MAY_UNPACK && HERE)
#else
#define CAN_GO_ON ((UNSENT && FREE) || (MAY_UNPACK && HERE))
#endif
#define POLL \
  released_seen = memory[RELEASED(me)]; \
  arrived = memory[SLOT(1 - me, got % SLOTS)]

inline pack() {
#ifdef IN_PLACE
  store(me, SLOT(me, sent % SLOTS), FRAGMENT(sent + 1, array[me].block[packed]), 1);
#else
  store(me, SLOT(me, sent % SLOTS), FRAGMENT(sent + 1, VALUE(me, packed)), 1);
#endif
  ring_if_sleeping(me, 1 - me);
  sent++;
  packed++
}

inline unpack() {
#ifdef IN_PLACE
  array[me].block[unpacked] = VALUE_OF(memory[SLOT(1 - me, got % SLOTS)]);
#else
  assert(memory[SLOT(1 - me, got % SLOTS)] == FRAGMENT(got + 1, VALUE(1 - me, unpacked)));
#endif
  got++;
  if
  :: got % PERIOD == 0 ->
     store(me, RELEASED(1 - me), got, 1);
     ring_if_sleeping(me, 1 - me)
  :: else
  fi;
  unpacked++
}

proctype rank(byte me) {
  byte runs, packed, unpacked, sent, got, released_seen, arrived;
  bool found_dead;
  sent = BEFORE;
  got = BEFORE;
  MORTAL_BEGIN
  do
  :: runs == RUNS -> goto done
  :: else ->
     /* start() */
     released_seen = memory[RELEASED(me)];
#ifdef NEVER_WAITS
     assert(released_seen + SLOTS >= sent + FRAGMENTS);
#endif
     do
     :: UNSENT && FREE -> pack()
     :: else -> break
     od;
     /* finish() */
#ifdef SEND_ALL_FIRST
     do
     :: UNSENT -> WAIT_UNTIL(me, released_seen = memory[RELEASED(me)], FREE); pack()
     :: else -> break
     od;
#endif
     do
     :: packed == FRAGMENTS && unpacked == FRAGMENTS -> break
     :: else ->
        WAIT_UNTIL(me, POLL, CAN_GO_ON);
        if
        :: UNSENT && FREE -> pack()
        :: MAY_UNPACK && HERE -> unpack()
        fi;
        arrived = 0
     od;
#ifdef IN_PLACE
     do
     :: packed > 0 ->
        packed--;
        assert(array[me].block[packed] == VALUE((me + runs + 1) % 2, packed))
     :: else -> break
     od;
#endif
     packed = 0;
     unpacked = 0;
     runs++
  od;
lost:
  assert(dead[1 - me] && !CAN_GO_ON);
done:
  skip
  MORTAL_END(me)
}

init {
  atomic {
#ifdef IN_PLACE
    byte f;
    do
    :: f < FRAGMENTS ->
       array[0].block[f] = VALUE(0, f);
       array[1].block[f] = VALUE(1, f);
       f++
    :: else -> break
    od;
#endif
    memory[RELEASED(0)] = BEFORE - BEFORE % PERIOD;
    memory[RELEASED(1)] = BEFORE - BEFORE % PERIOD;
    run rank(0);
    run rank(1)
  }
}
