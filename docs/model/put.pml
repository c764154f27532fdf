/* Rank 0 sends RUNS messages to rank 1, straight into its ghost where that is exposed (a direct put), otherwise through a slot.
 * The ghost belongs to rank 1 but between `start` and the end of the run: it writes its own value there before every run.
 * A sender that finds the ghost not exposed waits or gives up: here it looks once, at any moment.
 * Checked: no deadlock; before it starts, rank 1 finds its own value in the ghost; after each run it finds the message of this
 * run; with -DDEATH whoever gives up has lost a rank that is dead.
 *
 * Broken on purpose by -DNO_EXPOSE (puts without looking), -DOLD_EPOCH (takes the exposure of the run before for this one's),
 * -DNO_MARK (the receiver takes the slot for what it is not), and with -DWEAK by -DPLAIN_EXPOSE and -DPLAIN_FLAG (no release
 * stores) and -DMARK_LATE (the mark is stored behind the flag); -DNO_MEMBARRIER.
 */
#ifndef RUNS
#define RUNS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#define BUFFER 3

#define GHOST 0
#define EXPOSED 1
#define RELEASED 2
#define SLOT(use) (3 + 3 * ((use) % SLOTS))
#define FLAG(use) (SLOT(use))
#define MARK(use) (SLOT(use) + 1)
#define PAYLOAD(use) (SLOT(use) + 2)
#define CELLS (3 + 3 * SLOTS)
#define OWN 100
#define MESSAGE(run) (1 + (run))

#define FIRST_MORTAL 0
#define MORTALS 2
#define SOMEBODY_DEAD(me) dead[1 - (me)]

#include "machine.pml"

#ifdef PLAIN_EXPOSE
#define EXPOSE_IS_RELEASE 0
#else
#define EXPOSE_IS_RELEASE 1
#endif
#ifdef PLAIN_FLAG
#define FLAG_IS_RELEASE 0
#else
#define FLAG_IS_RELEASE 1
#endif
#if defined(NO_EXPOSE)
#define IS_EXPOSED true
#elif defined(OLD_EPOCH)
#define IS_EXPOSED (memory[EXPOSED] >= runs)
#else
#define IS_EXPOSED (memory[EXPOSED] == runs + 1)
#endif

inline publish(me, how) {
#ifndef MARK_LATE
  store(me, MARK(runs), how, 0);
#endif
  store(me, FLAG(runs), runs + 1, FLAG_IS_RELEASE);
#ifdef MARK_LATE
  store(me, MARK(runs), how, 0);
#endif
  ring_if_sleeping(me, 1 - me)
}

proctype sender() {
  byte runs, seen;
  bool found_dead;
  MORTAL_BEGIN
  do
  :: runs == RUNS -> goto done
  :: else ->
     WAIT_UNTIL(0, seen = memory[RELEASED], seen + SLOTS > runs);
     if
     :: IS_EXPOSED ->
        store(0, GHOST, MESSAGE(runs), 0);
        publish(0, 1)
     :: else ->
        store(0, PAYLOAD(runs), MESSAGE(runs), 0);
        publish(0, 0)
     fi;
     seen = 0;
     runs++
  od;
lost:
  assert(dead[1]);
done:
  skip
  MORTAL_END(0)
}

proctype receiver() {
  byte runs, seen, mark, found, i;
  bool found_dead;
  MORTAL_BEGIN
  do
  :: runs == RUNS -> goto done
  :: else ->
     store(1, GHOST, OWN, 0);
     load(1, GHOST, found);
     assert(found == OWN);
     store(1, EXPOSED, runs + 1, EXPOSE_IS_RELEASE);
     WAIT_UNTIL(1, seen = memory[FLAG(runs)], seen == runs + 1);
     seen = 0;
     mark = memory[MARK(runs)];
#ifdef NO_MARK
     mark = 0;
#endif
     if
     :: mark == 1
     :: else ->
        found = memory[PAYLOAD(runs)];
        store(1, GHOST, found, 0)
     fi;
     load(1, GHOST, found);
     assert(found == MESSAGE(runs));
     found = 0;
     mark = 0;
     store(1, RELEASED, runs + 1, 1);
     ring_if_sleeping(1, 0);
     runs++
  od;
lost:
  assert(dead[0]);
done:
  skip
  MORTAL_END(1)
}

init {
  atomic {
    run sender();
    run receiver()
  }
}
