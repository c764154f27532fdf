/* The machine that the protocol runs on: memory behind store buffers, doorbells, the futex, membarrier, death.
 *
 * A store goes into the buffer of the thread that makes it and becomes visible to the others later. Under TSO (x86) a
 * buffer empties in order. With -DWEAK its entries leave in any order, except that a release store leaves after everything
 * that was stored before it: the freedom that C++ gives. Loads happen in program order: where the code relies on an acquire
 * load, the order is what the acquire gives. Loads read memory only, because no thread
 * loads a cell that it stores itself but by `load`.
 *
 * A file that includes this one defines CELLS, and if the defaults do not fit THREADS, RANKS, RANK_OF, RING and WAKE.
 */

#ifndef THREADS
#define THREADS 2
#endif
#ifndef RANKS
#define RANKS THREADS
#endif
#ifndef RANK_OF
#define RANK_OF(thread) (thread)
#endif
#ifndef RING
#define RING(rank) rung[rank] = true
#define WAKE(rank) asleep[rank] = false
#endif
#ifndef BUFFER
#define BUFFER 2
#endif

byte memory[CELLS];

typedef StoreBuffer {
  byte stores;
  byte cell[BUFFER];
  byte value[BUFFER];
  bit release[BUFFER]
};
StoreBuffer buffer[THREADS];

/* One page per rank, written with locked instructions only. Of the bell a sleeper asks only whether it has grown since the
 * sleeper read it, so that is all that is kept of it, for each thread that may sleep. */
byte sleeping[RANKS];
bool rung[THREADS];

bool asleep[THREADS];  /* the kernel's queue of futex waiters */
bool killed[THREADS];  /* the thread makes no further step */
bool dead[THREADS];    /* ... and its pidfd says so: never before its stores are visible */

inline store(me, where, what, is_release) {
  atomic {
    buffer[me].stores < BUFFER ->
    buffer[me].cell[buffer[me].stores] = where;
    buffer[me].value[buffer[me].stores] = what;
    buffer[me].release[buffer[me].stores] = is_release;
    buffer[me].stores++
  }
}

/* A load of a cell that the thread may have stored itself: from its own buffer, if it is still there. Uses the caller's `i`. */
inline load(me, where, into) {
  d_step {
    into = memory[where];
    i = 0;
    do
    :: i < buffer[me].stores ->
       if
       :: buffer[me].cell[i] == where -> into = buffer[me].value[i]
       :: else
       fi;
       i++
    :: else -> break
    od;
    i = 0
  }
}

#define DRAINED(thread) (buffer[thread].stores == 0)

/* A store may leave the buffer if nothing that must stay before it is still there. */
#ifdef WEAK
#define MAY_LEAVE(t, i) \
  (i < buffer[t].stores && (i == 0 || (!buffer[t].release[i] && buffer[t].cell[i] != buffer[t].cell[0] \
                                       && (i < 2 || buffer[t].cell[i] != buffer[t].cell[1]))))
#else
#define MAY_LEAVE(t, i) (i == 0 && buffer[t].stores > 0)
#endif

inline leave(t, i) {
  d_step {
    MAY_LEAVE(t, i) ->
    memory[buffer[t].cell[i]] = buffer[t].value[i];
    buffer[t].stores--;
    k = i;
    do
    :: k < buffer[t].stores ->
       buffer[t].cell[k] = buffer[t].cell[k + 1];
       buffer[t].value[k] = buffer[t].value[k + 1];
       buffer[t].release[k] = buffer[t].release[k + 1];
       k++
    :: else -> break
    od;
    buffer[t].cell[k] = 0;
    buffer[t].value[k] = 0;
    buffer[t].release[k] = 0;
    k = 0
  }
}

active proctype memory_system() {
  byte k;
end:
  do
  :: leave(0, 0)
  :: leave(1, 0)
#if THREADS > 2
  :: leave(2, 0)
#endif
#ifdef WEAK
  :: leave(0, 1)
  :: leave(1, 1)
#if BUFFER > 2
  :: leave(0, 2)
  :: leave(1, 2)
#endif
#endif
  od
}

/* What a writer does after each store that somebody may wait for. No fence: the load of `sleeping` may be done while the
 * store is still in the buffer. fetch_add is a locked instruction: it empties the buffer first. */
inline ring_if_sleeping(me, peer) {
  if
  :: sleeping[peer] == 0
  :: else ->
     atomic { DRAINED(me) -> RING(peer) };
     WAKE(peer)
  fi
}

/* The processor of every other thread passes a full barrier at some moment between call and return. */
inline membarrier(me) {
#ifndef NO_MEMBARRIER
  if
  :: me == 0 -> skip
  :: else -> DRAINED(0)
  fi;
  if
  :: me == 1 -> skip
  :: else -> DRAINED(1)
  fi
#if THREADS > 2
  ;
  if
  :: me == 2 -> skip
  :: else -> DRAINED(2)
  fi
#endif
#else
  skip
#endif
}

/* futex(FUTEX_WAIT, bell, seen): the kernel compares and queues in one step. In the variants where nobody dies there is no
 * time-out: a wake-up that is lost is a deadlock here. Where peers die, the time-out fires once one is dead. */
inline futex_wait(me, found_dead) {
  atomic {
    if
    :: rung[me]
    :: else -> asleep[me] = true
    fi
  };
  if
  :: !asleep[me]
#ifdef DEATH
  :: asleep[me] && SOMEBODY_DEAD(me) -> atomic { asleep[me] = false; found_dead = true }
#endif
  fi
}

inline announce(me) { atomic { DRAINED(me) -> sleeping[RANK_OF(me)]++ } }
inline recall(me) { atomic { DRAINED(me) -> sleeping[RANK_OF(me)]-- } }

/* One wait. `poll` loads what the condition needs, `holds` is the condition. Ends when it holds, or at the label `lost` when
 * it does not and a peer is found dead. */
#if defined(ANNOUNCE_LATE)
#define SLEEP(me, poll, holds) \
  rung[me] = false; \
  membarrier(me); \
  poll; \
  if \
  :: (holds) \
  :: else -> announce(me); futex_wait(me, found_dead); recall(me) \
  fi
#elif defined(BELL_LATE)
#define SLEEP(me, poll, holds) \
  announce(me); \
  membarrier(me); \
  poll; \
  if \
  :: (holds) \
  :: else -> rung[me] = false; futex_wait(me, found_dead) \
  fi; \
  recall(me)
#else
#define SLEEP(me, poll, holds) \
  rung[me] = false; /* seen = bell */ \
  announce(me); \
  membarrier(me); \
  poll; \
  if \
  :: (holds) \
  :: else -> futex_wait(me, found_dead) \
  fi; \
  recall(me)
#endif

#ifdef LOST_WITHOUT_POLLING
#define POLL_AGAIN(poll)
#else
#define POLL_AGAIN(poll) poll;
#endif

#define WAIT_UNTIL(me, poll, holds) \
  poll; \
  do \
  :: (holds) -> break \
  :: else -> \
     SLEEP(me, poll, holds); \
     POLL_AGAIN(poll) \
     if \
     :: found_dead && !(holds) -> goto lost \
     :: else \
     fi \
  od

/* Kills one of the threads that may die, at any moment or never. */
#ifdef DEATH
active proctype killer() {
  byte victim;
  do
  :: victim + 1 < MORTALS -> victim++
  :: break
  od;
  if
  :: killed[FIRST_MORTAL + victim] = true;
     DRAINED(FIRST_MORTAL + victim);
     dead[FIRST_MORTAL + victim] = true
  :: skip
  fi
}
#define MORTAL_BEGIN {
#define MORTAL_END(me) } unless { killed[me] }
#else
#define MORTAL_BEGIN
#define MORTAL_END(me)
#endif
