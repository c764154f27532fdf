/* Two ranks exchange their arrays in place RUNS times, as `DirectExchange` does: each writes its array, says "ready", waits for the
 * other's, moves its share (part `me` of both arrays), says "done", waits for the other's, and reads its array.
 * "Ready" and "done" are messages without data on ordinary channels of two slots.
 * Checked: no deadlock; what is moved is what was written in this run; after it each has the other's values in both parts; a signal
 * always finds its slot free, so that nobody waits for it; with -DDEATH whoever gives up has lost a rank that is dead, and only
 * when its signal is not there.
 *
 * Broken on purpose by -DNO_READY (moves without waiting for the other's "ready"), -DNO_DONE (ends without its "done"), -DDONE_FIRST
 * (says it before it moves), -DPLAIN_READY and -DPLAIN_DONE (the flag is no release store), -DONE_SLOT, -DNO_MEMBARRIER.
 */
#ifndef RUNS
#define RUNS 2
#endif
#ifdef ONE_SLOT
#define SLOTS 1
#else
#define SLOTS 2
#endif

#define DATA(rank, part) ((rank) * 2 + (part))
#define SIGNAL(from) (4 + (from))   /* messages so far */
#define RELEASED(from) (6 + (from)) /* of these, read */
#define CELLS 8
#define VALUE(rank, part) (1 + runs * 4 + (rank) * 2 + (part))

#define FIRST_MORTAL 0
#define MORTALS 2
#define SOMEBODY_DEAD(me) dead[1 - (me)]

#include "machine.pml"

#ifdef PLAIN_READY
#define READY_IS_RELEASE 0
#else
#define READY_IS_RELEASE 1
#endif
#ifdef PLAIN_DONE
#define DONE_IS_RELEASE 0
#else
#define DONE_IS_RELEASE 1
#endif

inline say(me, is_release) {
  assert(memory[RELEASED(me)] + SLOTS > sent);
  sent++;
  store(me, SIGNAL(me), sent, is_release);
  ring_if_sleeping(me, 1 - me)
}

inline hear(me) {
  WAIT_UNTIL(me, seen = memory[SIGNAL(1 - me)], seen > got);
  got++;
  seen = 0;
  store(me, RELEASED(1 - me), got, 1);
  ring_if_sleeping(me, 1 - me)
}

inline move(me) {
  load(me, DATA(me, me), mine);
  load(me, DATA(1 - me, me), others);
  assert(mine == VALUE(me, me) && others == VALUE(1 - me, me));
  store(me, DATA(me, me), others, 0);
  store(me, DATA(1 - me, me), mine, 0);
  mine = 0;
  others = 0
}

proctype rank(byte me) {
  byte runs, sent, got, seen, mine, others, i;
  bool found_dead;
  MORTAL_BEGIN
  do
  :: runs == RUNS -> goto done
  :: else ->
     store(me, DATA(me, 0), VALUE(me, 0), 0);
     store(me, DATA(me, 1), VALUE(me, 1), 0);
     say(me, READY_IS_RELEASE);
#ifndef NO_READY
     hear(me);
#endif
#ifdef DONE_FIRST
     say(me, DONE_IS_RELEASE);
#endif
     move(me);
#ifndef DONE_FIRST
     say(me, DONE_IS_RELEASE);
#endif
#ifndef NO_DONE
     hear(me);
#endif
     load(me, DATA(me, 0), mine);
     load(me, DATA(me, 1), others);
     assert(mine == VALUE(1 - me, 0) && others == VALUE(1 - me, 1));
     mine = 0;
     others = 0;
     runs++
  od;
lost:
  assert(dead[1 - me] && seen <= got);
done:
  skip
  MORTAL_END(me)
}

init {
  atomic {
    run rank(0);
    run rank(1)
  }
}
