/* The messages of plans between cards (src/device/slice_kernels.h): a rank packs into memory of the next one, stores its flag there,
 * waits for the flag of the one before it, unpacks, and stores the flag that says so. A message has memory for runs of even and odd
 * numbers; the run after the next one waits for that second flag. Numbers of runs wrap at 4 here. The ranks are a ring, or with
 * -DONE_WAY a line, whose first one only sends. With -DLOSS the last rank may end at any moment; the processors of the others then
 * tell their kernels to stop, at any moment.
 * A kernel that gives up tells its processor by a word, and another word in its window ends the launches behind it.
 * Checked: a run behind which the processor finds no such word unpacks what was packed in it; all ranks end.
 *
 * Broken on purpose by -DONE_SET (of memory), -DNO_SECOND_FLAG (the sender does not wait for it), -DEQUAL (a flag that is one run ahead
 * does not count), -DNO_WRAP (flags are compared as plain numbers), -DFLAG_FIRST (stored before the data), -DREAD_LATE (a barrier is
 * missing: the second flag is stored while threads still read), -DGO_ON (a kernel that is told to stop unpacks what is not there),
 * -DLAUNCH_ON (launches behind one that gave up do not look at the word in the window), and with -DWEAK by -DPLAIN_FLAG.
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef RUNS
#define RUNS 6
#endif
#define THREADS RANKS
#define BUFFER 4
#define WRAP 4

#ifdef ONE_SET
#define SET(n) 0
#else
#define SET(n) ((n) % 2)
#endif
#define ARRIVED(rank) (rank)
#define UNPACKED(rank) (RANKS + (rank))
#define WIRE(rank, n) (2 * RANKS + 2 * (rank) + SET(n))
#define CELLS (4 * RANKS)
#define SOMEBODY_DEAD(me) ended_early

bool ended_early;

#include "machine.pml"

#if defined(EQUAL)
#define HAS_COME(seen, n) ((seen) == (n) % WRAP)
#elif defined(NO_WRAP)
#define HAS_COME(seen, n) ((seen) >= (n) % WRAP)
#else
#define HAS_COME(seen, n) (((seen) + WRAP - (n) % WRAP) % WRAP < WRAP / 2)
#endif
#ifdef PLAIN_FLAG
#define RELEASE 0
#else
#define RELEASE 1
#endif
#ifdef NO_SECOND_FLAG
#define IS_FREE(me, n) true
#else
#define IS_FREE(me, n) HAS_COME(memory[UNPACKED(me)], (n) + WRAP - 2)
#endif
#ifdef ONE_WAY
#define SENDS (me + 1 < RANKS)
#define RECEIVES (me > 0)
#else
#define SENDS true
#define RECEIVES true
#endif
#ifdef LOSS
#define MAY_END if :: me == RANKS - 1 -> ended_early = true; goto done :: true fi
#else
#define MAY_END skip
#endif

#define NEXT ((me + 1) % RANKS)
#define BEFORE ((me + RANKS - 1) % RANKS)

bool gave_up[RANKS];  /* for the processor, and in the window */
#ifdef LAUNCH_ON
#define IS_OVER false
#else
#define IS_OVER gave_up[me]
#endif

inline await(condition) {
  stopped = false;
  if
  :: condition
  :: ended_early && !(condition) ->
#ifdef GO_ON
     skip
#else
     atomic { gave_up[me] = true; stopped = true }
#endif
  fi
}
inline put() { MAY_END; store(me, WIRE(NEXT, n), launch, 0) }
inline arrived() { MAY_END; store(me, ARRIVED(NEXT), n % WRAP, RELEASE) }
inline take() { found = memory[WIRE(me, n)]; assert(found == launch || gave_up[me]); found = 0 }
inline unpacked() { MAY_END; store(me, UNPACKED(BEFORE), n % WRAP, RELEASE) }

proctype rank(byte me) {
  byte launch, n, found;
  bool stopped;
  do
  :: launch == RUNS -> break
  :: else ->
     launch++;
     n++;
     if
     :: SENDS && !IS_OVER ->
        await(IS_FREE(me, n));
        if
        :: stopped -> skip
        :: else ->
#ifdef FLAG_FIRST
           arrived();
           put()
#else
           put();
           arrived()
#endif
        fi
     :: else
     fi;
     if
     :: RECEIVES && !IS_OVER ->
        await(HAS_COME(memory[ARRIVED(me)], n));
        if
        :: stopped -> n--  /* the last launch of a run counts it */
        :: else ->
#ifdef READ_LATE
           unpacked();
           take()
#else
           take();
           unpacked()
#endif
        fi
     :: else
     fi
  od;
done:
  skip
}

init {
  atomic {
    run rank(0);
    run rank(1)
#if RANKS > 2
    ;
    run rank(2)
#endif
  }
}
