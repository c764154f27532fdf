/* Who is lost? Rank 0 waits for a message of rank 1, which sends it when it has one of rank 2. Rank 2 sends and leaves in order,
 * or is killed at any moment. Rank 1 sends and leaves, or gives up: it writes down whom it saw die and ends, with or without
 * leaving in order first.
 * Checked: nobody gives up unless rank 2 was killed, and whoever gives up names rank 2.
 *
 * It is right because of the order of the checks: first the processes, then what they wrote before they ended (`left`,
 * `reported_lost`), last the flag. Broken on purpose by checking earlier: -DREADY_FIRST, -DLEFT_FIRST, -DREPORTED_LOST_FIRST.
 */
#define NOBODY 9

bool flag[3], left[3], ended[3];
byte reported_lost = NOBODY; /* of rank 1 */
bool kill;

active proctype killer() {
  if
  :: kill = true
  :: skip
  fi
}

active proctype rank2() {
  {
    flag[2] = true;
    left[2] = true;
    ended[2] = true
  } unless { kill && !ended[2] };
  ended[2] = true
}

/* One poll of a peer, and of the flag that is waited for. */
inline poll(ready) {
#ifdef READY_FIRST
  here = ready;
#endif
#ifdef REPORTED_LOST_FIRST
  told = reported_lost;
#endif
#ifdef LEFT_FIRST
  left1 = left[1];
  left2 = left[2];
#endif
  ended1 = ended[1];
  ended2 = ended[2];
#ifndef LEFT_FIRST
  left1 = left[1];
  left2 = left[2];
#endif
#ifndef REPORTED_LOST_FIRST
  told = reported_lost;
#endif
#ifndef READY_FIRST
  here = ready
#else
  skip
#endif
}

active proctype rank1() {
  bool here, ended1, ended2, left1, left2;
  byte told;
  do
  :: poll(flag[2]);
     if
     :: here -> goto arrived
     :: !here && ((ended2 && !left2) || left2) -> break
     :: else
     fi
  od;
  assert(kill);
  reported_lost = 2;
  if
  :: left[1] = true
  :: skip
  fi;
  goto end_of_process;
arrived:
  flag[1] = true;
  left[1] = true;
end_of_process:
  ended[1] = true
}

active proctype rank0() {
  bool here, ended1, ended2, left1, left2;
  byte told, lost = NOBODY;
  do
  :: poll(flag[1]);
     if
     :: here -> goto arrived
     :: else
     fi;
     if
     :: told != NOBODY -> lost = told
     :: told == NOBODY && ended1 && !left1 -> lost = 1
     :: told == NOBODY && !(ended1 && !left1) && ended2 && !left2 -> lost = 2
     :: told == NOBODY && !(ended1 && !left1) && !(ended2 && !left2) && left1 -> lost = 1
     :: else -> skip
     fi;
     if
     :: lost != NOBODY -> break
     :: else
     fi
  od;
  assert(kill && lost == 2);
arrived:
  skip
}
