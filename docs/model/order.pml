/* Rank 0 unpacks the messages of two ranks in the order of the round, which is any: PARTS fragments of each, through SLOTS
 * slots. It waits for the next part only, though others may have arrived.
 * Checked: no deadlock; the parts are combined in the order of the round.
 *
 * Broken on purpose by -DAS_THEY_ARRIVE (whatever has arrived is unpacked), -DOTHER_ORDER (messages list their parts in
 * another order than the round).
 */
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef PARTS
#define PARTS 2
#endif

/* Slots and `released` of the channel from rank 1, then those from rank 2. A slot is one word, the use that it holds. */
#define SLOT(from, slot) (((from) - 1) * (SLOTS + 1) + (slot))
#define RELEASED(from) SLOT(from, SLOTS)
#define CELLS (2 * (SLOTS + 1))
#define THREADS 3

#define FIRST_MORTAL 1
#define MORTALS 2
#define SOMEBODY_DEAD(me) (dead[1] || dead[2])

#include "machine.pml"

byte order[2 * PARTS]; /* of the round: the rank that sends each part */

#ifdef OTHER_ORDER
#define USE_OF_PART(part) (PARTS + 1 - (part))
#else
#define USE_OF_PART(part) (part)
#endif
#define ARRIVED(from, use) (memory[SLOT(from, ((use) - 1) % SLOTS)] >= (use))
#define MORE(from) (got[from] < PARTS)
#ifdef AS_THEY_ARRIVE
#define HERE(from) (MORE(from) && ARRIVED(from, got[from] + 1))
#else
#define HERE(from) (next < 2 * PARTS && order[next] == from && ARRIVED(from, USE_OF_PART(got[from] + 1)))
#endif
#define POLL here1 = HERE(1); here2 = HERE(2)

inline unpack(from) {
  assert(order[next] == from);
  got[from]++;
  next++;
  store(0, RELEASED(from), got[from], 1);
  ring_if_sleeping(0, from)
}

proctype receiver() {
  byte got[3], next;
  bool here1, here2, found_dead;
  MORTAL_BEGIN
  do
  :: next == 2 * PARTS -> break
  :: else ->
     WAIT_UNTIL(0, POLL, here1 || here2);
     if
     :: here1 -> unpack(1)
     :: here2 -> unpack(2)
     fi;
     here1 = false;
     here2 = false
  od;
lost:
  assert(next == 2 * PARTS)
  MORTAL_END(0)
}

proctype sender(byte me) {
  byte sent, released;
  bool found_dead;
  do
  :: sent == PARTS -> break
  :: else ->
     WAIT_UNTIL(me, released = memory[RELEASED(me)], released + SLOTS > sent);
     sent++;
     store(me, SLOT(me, (sent - 1) % SLOTS), sent, 1);
     ring_if_sleeping(me, 0)
  od;
lost:
  assert(sent == PARTS)
}

init {
  byte i, first;
  do
  :: i == 2 * PARTS -> break
  :: i < 2 * PARTS && first < PARTS -> order[i] = 1; first++; i++
  :: i < 2 * PARTS && i - first < PARTS -> order[i] = 2; i++
  od;
  atomic {
    run receiver();
    run sender(1);
    run sender(2)
  }
}
