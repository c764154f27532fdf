/* RANKS ranks run operations as collectives/exchange*.cc do: each sends a header to every other rank, and data ahead of the
 * others' headers as far as slots are free; it then compares the headers, and goes on chunk by chunk or throws a Mismatch.
 * After a Mismatch every rank settles at its next operation: it states how much it had sent ahead, and drops what the others
 * had. Each rank runs any OPERATIONS operations, and a last one that is the same on all.
 * A channel is what channel.pml has shown it to be: a queue of as many messages as it has slots. With -DREDUCE a chunk is
 * received in the step in which it is sent, as in the reduce phase, and up to SLOTS chunks are sent ahead; otherwise a step
 * later, and one chunk.
 * Checked: no deadlock; every chunk that is received belongs to the operation that the rank runs; either all ranks throw a
 * Mismatch or none; after the last operation nothing is left in the channels.
 *
 * Broken on purpose by -DNOTHING_DROPPED (settling ranks leave what was sent ahead), -DDROP_OWN_NUMBER (a rank drops as many
 * chunks as it had sent itself), -DSENT_AGAIN (finish() does not know what start() has sent), -DAHEAD_WAITS (start() waits
 * for free slots), -DNOT_SETTLED (nobody settles), -DHEADERS_STAY (the headers that were not compared are not
 * received).
 */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifndef OPERATIONS
#define OPERATIONS 2
#endif
#ifdef REDUCE
#define AHEAD SLOTS
#else
#define AHEAD 1
#endif
#ifdef AHEAD_WAITS
#undef AHEAD
#define AHEAD CHUNKS
#endif

#define BARRIER 0
#define ALL 1       /* every rank sends CHUNKS chunks to every other one */
#define FROM_FIRST 2 /* only rank 0 sends */
#define KINDS 3
#define SETTLING 3

#define PATH(from, to) ((from) * RANKS + (to))
/* The kind of operation; and, of a settling rank, the number of chunks that it had sent ahead. */
chan line[RANKS * RANKS] = [2] of { byte, byte };
/* The number of the operation, and of the chunk. */
chan data[RANKS * RANKS] = [SLOTS] of { byte, byte };

#define SENDS(from) (kind == ALL || (kind == FROM_FIRST && (from) == 0))
#define EACH_PEER \
  peer = 0; \
  do \
  :: peer == RANKS -> break \
  :: peer == me -> peer++ \
  :: else ->
#define END \
  ; peer++ \
  od

proctype rank(byte me) {
  byte done, kind, peer, theirs, number, had_sent, chunk;
  byte sent[RANKS];
  bool compared[RANKS];
  bool disagreed;
  do
  :: done > OPERATIONS -> break
  :: else ->
     /* start() */
     if
     :: disagreed ->
        disagreed = false;
#ifdef NOT_SETTLED
        EACH_PEER if :: compared[peer] :: else -> line[PATH(peer, me)] ? theirs, number fi END
#else
#ifndef HEADERS_STAY
        EACH_PEER if :: compared[peer] :: else -> line[PATH(peer, me)] ? theirs, number fi END;
#endif
        EACH_PEER line[PATH(me, peer)] ! SETTLING, sent[peer] END;
        EACH_PEER
          line[PATH(peer, me)] ? theirs, had_sent;
          assert(theirs == SETTLING);
#ifdef DROP_OWN_NUMBER
          had_sent = sent[peer];
#endif
#ifdef NOTHING_DROPPED
          had_sent = 0;
#endif
          do
          :: had_sent == 0 -> break
          :: else -> data[PATH(peer, me)] ? number, chunk; had_sent--
          od
        END
#endif
     :: else
     fi;
     if
     :: done == OPERATIONS -> kind = ALL
     :: else -> select(kind : 0 .. KINDS - 1)
     fi;
     EACH_PEER sent[peer] = 0; compared[peer] = false; line[PATH(me, peer)] ! kind, 0 END;
     if
     :: SENDS(me) ->
        EACH_PEER
          do
          :: sent[peer] == AHEAD || sent[peer] == CHUNKS -> break
#ifdef AHEAD_WAITS
          :: else -> data[PATH(me, peer)] ! done, sent[peer]; sent[peer]++
#else
          :: else ->
             if
             :: nfull(data[PATH(me, peer)]) -> data[PATH(me, peer)] ! done, sent[peer]; sent[peer]++
             :: break /* a release may be seen later than it was made */
             fi
#endif
          od
        END
     :: else
     fi;
     /* finish(): a header that differs stays in its slot */
     EACH_PEER
       line[PATH(peer, me)] ? <theirs, number>;
       if
       :: theirs != kind -> disagreed = true; break
       :: else -> line[PATH(peer, me)] ? theirs, number; compared[peer] = true
       fi
        END;
     if
     :: disagreed -> goto next
     :: else
     fi;
     number = 0;
     do
     :: kind == BARRIER -> break
     :: number > CHUNKS -> break
     :: else ->
        if
        :: SENDS(me) && number < CHUNKS ->
           EACH_PEER
             if
#ifdef SENT_AGAIN
             :: true
#else
             :: sent[peer] <= number
#endif
                -> data[PATH(me, peer)] ! done, number; sent[peer] = number + 1
#ifndef SENT_AGAIN
             :: else
#endif
             fi
        END
        :: else
        fi;
        EACH_PEER
          if
#ifdef REDUCE
          :: SENDS(peer) && number < CHUNKS ->
             data[PATH(peer, me)] ? theirs, chunk;
             assert(theirs == done && chunk == number)
#else
          :: SENDS(peer) && number > 0 ->
             data[PATH(peer, me)] ? theirs, chunk;
             assert(theirs == done && chunk == number - 1)
#endif
          :: else
          fi
        END;
        number++
     od;
     if
     :: done == OPERATIONS ->
        EACH_PEER assert(empty(data[PATH(peer, me)]) && empty(line[PATH(peer, me)])) END
     :: else
     fi;
next:
     done++
  od
}

init {
  atomic {
    byte r;
    do
    :: r == RANKS -> break
    :: else -> run rank(r); r++
    od
  }
}
