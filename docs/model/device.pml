/* The meetings of a group in the all-reduce of cards (src/device/all_reduce.h): each rank writes to its slot in the windows of the
 * others, stores its flags there, waits for theirs, and reads. There are two sets of slots. Numbers of meetings wrap at 4 here.
 * A launch is one meeting here. With -DLOSS the last rank may end at any moment; the processors of the others then tell their
 * kernels to stop, at any moment. A kernel that gives up tells its processor by a word, and another word in its window ends the
 * launches behind it, whose meeting would have the same number.
 * Checked: a launch behind which the processor finds no such word has found in each slot what was written for this launch, by a
 * rank that had everything of the one before; all ranks end.
 *
 * Broken on purpose by -DONE_SET (of slots), -DEQUAL (a flag that is one meeting ahead does not count), -DNO_WRAP (flags are compared
 * as plain numbers), -DFLAG_FIRST (flags are stored before the data), -DREAD_LATE (no barrier: the next flags are stored while threads
 * still read), -DGO_ON (a kernel that is told to stop goes on without what is missing), -DSILENT (it gives up and does not say so),
 * -DLAUNCH_ON (the launch behind it does not look at the word in the window), and with -DWEAK by -DPLAIN_FLAG.
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef MEETINGS
#define MEETINGS 6
#endif
#define THREADS RANKS
#define BUFFER 4
#define WRAP 4

#ifdef ONE_SET
#define SET(n) 0
#else
#define SET(n) ((n) % 2)
#endif
#define FLAG(window, from) ((window) * RANKS + (from))
#define SLOT(window, from, n) (RANKS * RANKS + ((window) * RANKS + (from)) * 2 + SET(n))
#define CELLS (3 * RANKS * RANKS)
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

#ifdef LOSS
#define MAY_END if :: me == RANKS - 1 -> ended_early = true; goto done :: true fi
#else
#define MAY_END skip
#endif

#define FOR_OTHERS(step) \
  r = 0; \
  do \
  :: r == RANKS -> break \
  :: r == me -> r++ \
  :: r < RANKS && r != me -> step; r++ \
  od

inline put() { FOR_OTHERS(MAY_END; store(me, SLOT(r, me, n), launch * whole, 0)) }
inline flags() { FOR_OTHERS(MAY_END; store(me, FLAG(r, me), n % WRAP, RELEASE)) }
inline wait() {
  FOR_OTHERS(
    if
    :: HAS_COME(memory[FLAG(me, r)], n)
    :: ended_early && !HAS_COME(memory[FLAG(me, r)], n) -> whole = false
    fi)
}
inline read(which, value) {
  FOR_OTHERS(found = memory[SLOT(me, r, which)]; assert(found == value || gave_up[me]); found = 0)
}

bool gave_up[RANKS];   /* for the processor */
bool is_over[RANKS];   /* in the window */

inline give_up() {
  atomic {
#ifndef SILENT
    gave_up[me] = true;
#endif
#ifndef GO_ON
    whole = true;
    n--;
#ifndef LAUNCH_ON
    is_over[me] = true
#endif
#endif
  }
}

proctype rank(byte me) {
  byte launch, n, r, found;
  bool whole = true;
  do
  :: launch == MEETINGS -> break
  :: launch < MEETINGS && is_over[me] ->
     launch++;
     assert(gave_up[me])
  :: else ->
     launch++;
     n++;
#ifdef FLAG_FIRST
     flags();
     put();
#else
     put();
     flags();
#endif
#ifdef READ_LATE
     if
     :: n > 1 -> read(n - 1, n - 1)
     :: else
     fi;
     wait();
#else
     wait();
     if
     :: whole -> read(n, launch)
     :: else -> give_up()
     fi
#endif
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
