/* A channel over two rails. A fragment has two parts, one for each rail that works. A rail may go down once; what is under way on it is
 * lost, or arrives later, also after the slot has a new use. Both ends learn that at different times (in a model without time: at any
 * moment after it went down), and then send again what the other one may not have. The last rail that works stays.
 *
 * The sender's and the receiver's slots hold the number of the use that was written into them. A message names its use; its data are
 * read from the slot when it is delivered, as a library does that has not taken all bytes. The program takes a fragment at once.
 *
 * With -DREUSE_SENT the sender has one slot, which it reuses once the library has taken the bytes, as over one rail.
 * Broken on purpose by -DTAKE_AGAIN, -DREUSE_SENT, -DNO_PARTS_AGAIN and -DNO_RELEASES_AGAIN.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifdef REUSE_SENT
#define OWN 1
#define BYTES(use, value) value
#else
#define OWN SLOTS
#define BYTES(use, value) slot[(use - 1) % OWN]
#endif
#define USES 3
#define LENGTH 8

bit fails = 0;           /* one has gone down */
bit sender_knows = 0;
bit receiver_knows = 0;
byte dead = 2;

byte slot[OWN];          /* of the sender: the use that it holds */
byte given = 0;          /* uses that the sender has given */
byte returned = 0;       /* uses that the sender knows to be released */
byte filling[SLOTS];     /* of the receiver: the use that arrives there */
bit has[4];              /* by slot and part: whether it has arrived */
byte taken = 0;          /* uses that the program has taken, and released */

/* Under way: the use, the part, and the use that the slot held. Releases: the use. */
chan parts_0 = [LENGTH] of { byte, bit, byte };
chan parts_1 = [LENGTH] of { byte, bit, byte };
chan releases_0 = [LENGTH] of { byte };
chan releases_1 = [LENGTH] of { byte };

inline send_part(use, part, rail) {
  if
  :: rail == 0 -> parts_0 ! use, part, slot[(use - 1) % OWN]
  :: else -> parts_1 ! use, part, slot[(use - 1) % OWN]
  fi
}

/* The rail of a part, and of messages that are short. */
#define RAIL_OF(part, knows) ((knows && dead == part) -> 1 - part : part)

inline arrive(use, part, value) {
  d_step {
    byte at = (use - 1) % SLOTS;
    if
#ifndef TAKE_AGAIN
    :: use < filling[at] || (use == filling[at] && has[2 * at + part])
#endif
    :: else ->
       if
       :: use != filling[at] -> filling[at] = use; has[2 * at] = 0; has[2 * at + 1] = 0
       :: else
       fi;
       assert(BYTES(use, value) == use); /* else the bytes are those of another use */
       has[2 * at + part] = 1
    fi
  }
}

active proctype sender() {
  byte use;
  byte last;
  do
  :: given < USES && given < returned + SLOTS ->
     atomic {
       given++;
       slot[(given - 1) % OWN] = given;
       send_part(given, 0, RAIL_OF(0, sender_knows));
       send_part(given, 1, RAIL_OF(1, sender_knows))
     }
  :: atomic { releases_0 ? use -> returned = (use > returned -> use : returned) }
  :: atomic { releases_1 ? use -> returned = (use > returned -> use : returned) }
  :: atomic { fails && !sender_knows -> sender_knows = 1;
#ifndef NO_PARTS_AGAIN
       last = returned;
       do
       :: last < given -> last++; send_part(last, 0, 1 - dead); send_part(last, 1, 1 - dead)
       :: else -> break
       od
#endif
     }
  :: returned == USES -> break
  od
}

active proctype receiver() {
  byte use;
  byte value;
  bit part;
  do
  :: atomic { parts_0 ? use, part, value -> arrive(use, part, value) }
  :: atomic { parts_1 ? use, part, value -> arrive(use, part, value) }
  :: atomic { taken < USES && filling[taken % SLOTS] == taken + 1 && has[2 * (taken % SLOTS)] && has[2 * (taken % SLOTS) + 1] ->
       taken++;
       if
       :: RAIL_OF(0, receiver_knows) == 0 -> releases_0 ! taken
       :: else -> releases_1 ! taken
       fi
     }
  :: atomic { fails && !receiver_knows -> receiver_knows = 1;
#ifndef NO_RELEASES_AGAIN
       if
       :: taken > 0 && dead == 0 -> releases_1 ! taken
       :: taken > 0 && dead == 1 -> releases_0 ! taken
       :: else
       fi
#endif
     }
  :: returned == USES -> break
  od
}

active proctype network() {
  byte use;
  byte value;
  bit part;
  if
  :: atomic { dead = 0; fails = 1 }
  :: atomic { dead = 1; fails = 1 }
  :: true
  fi;
  /* What is under way on a rail that is down is lost, or not. */
end:
  do
  :: atomic { dead == 0 && nempty(parts_0) -> parts_0 ? use, part, value }
  :: atomic { dead == 1 && nempty(parts_1) -> parts_1 ? use, part, value }
  :: atomic { dead == 0 && nempty(releases_0) -> releases_0 ? use }
  :: atomic { dead == 1 && nempty(releases_1) -> releases_1 ? use }
  od
}
