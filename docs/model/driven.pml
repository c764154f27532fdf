/* Three ranks, two hosts. Rank 0 sends rank 2 (elsewhere) a long message and waits for a word from rank 1 in shared memory; rank 2
 * answers rank 1 (elsewhere) when the long message is there; only then rank 1 stores the word. The library that carries messages
 * between hosts moves them only while it is called: a long message asks for its receiver, is asked for, and is sent, each
 * in a call of the rank concerned. So rank 0 must call the library while it waits for something else.
 *
 * A nap ends by itself. The model lets it end where that makes a difference: the word is there (its ring may have been missed, as
 * no membarrier is made for a nap), or the library has something to move for this rank.
 *
 * Broken on purpose by -DNOT_DRIVEN (who waits in memory does not call the library) and -DSLEEP_WITHOUT_LIMIT (who waits calls it
 * once and then sleeps until the bell rings).
 */
mtype = { nothing, asks, asked_for, sent, there };

mtype long_one = nothing;  /* 0 -> 2 */
mtype short_one = nothing; /* 2 -> 1, sent at once */
bit word;                  /* 1 -> 0, in shared memory */
bit sleeping;              /* rank 0's page */
bit asleep;

#define HAS_WORK(me) \
  ((me == 2 && (long_one == asks || long_one == sent)) || (me == 0 && long_one == asked_for) \
   || (me == 1 && short_one == sent))

inline call_library(me) {
  d_step {
    if
    :: me == 2 && long_one == asks -> long_one = asked_for
    :: me == 0 && long_one == asked_for -> long_one = sent
    :: me == 2 && long_one == sent -> long_one = there
    :: me == 1 && short_one == sent -> short_one = there
    :: else
    fi
  }
}

/* Who waits for a message over the library calls it until it is there. */
inline wait_for(me, message) {
  do
  :: message == there -> break
  :: message != there && HAS_WORK(me) -> call_library(me)
  od
}

active proctype rank_0() {
  long_one = asks;
  do
  :: word -> break
  :: else ->
#ifndef NOT_DRIVEN
     call_library(0);
#endif
     sleeping = 1;
     if
     :: word
     :: !word -> asleep = 1;
        if
        :: !asleep
#ifndef SLEEP_WITHOUT_LIMIT
        :: asleep && (word || HAS_WORK(0)) -> asleep = 0
#endif
        fi
     fi;
     sleeping = 0
  od
}

active proctype rank_1() {
  wait_for(1, short_one);
  word = 1;
  if
  :: sleeping -> asleep = 0
  :: else
  fi
}

active proctype rank_2() {
  wait_for(2, long_one);
  short_one = sent
}
