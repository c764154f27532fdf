/* Errors that end the program. */
#include <stdint.h>

#include "compat/qspi.h"
#include "tests/compat/check.h"
#include "tests/compat/qspi/parts.h"

#define MADE "expected a message that qspi_create_msg made, found "

static int one;
static int two[2];
static qspi_msg_t both[2]; /* a message of this rank to itself: received, sent */

static void prepare_both(void) {
  both[0] = receiving(0, &two[0], 1);
  both[1] = sending(0, &one, 1);
  qspi_prepare(both, 2);
}

static void exchange_both(void) {
  prepare_both();
  for (int i = 0; i < 2; ++i) qspi_start(both[i]);
  for (int i = 0; i < 2; ++i) qspi_wait(both[i]);
}

ERROR(not_set, 1, 1, "qspi_prepare: expected a message that qspi_set_send") {
  qspi_msg_t msg = qspi_create_msg();
  qspi_prepare(&msg, 1);
}

REFUSED(not_prepared, "qspi_start: expected a message that qspi_prepare has prepared", qspi_start(sending(0, &one, 1)));
REFUSED(waited_unprepared, "qspi_wait: expected a message that qspi_prepare has prepared",
        qspi_wait(receiving(0, &one, 1)));

ERROR(set_again, 1, 1,
      "qspi_start: expected a message that qspi_prepare has prepared") { /* and so not prepared any more */
  prepare_both();
  qspi_set_send(0, &one, 4, both[1]);
  qspi_start(both[1]);
}

ERROR(wrong_rank, 2, 1, "expected ranks from 0 to 1, found 2") {
  qspi_msg_t msg = sending(2, &one, 1);
  qspi_prepare(&msg, 1);
}

REFUSED(negative_rank, "qspi_set_send: expected the number of a rank, found -1", sending(-1, &one, 1));
REFUSED(no_buffer, "qspi_set_send: expected memory of 4 bytes, found a null pointer",
        qspi_set_send(0, NULL, 4, qspi_create_msg()));
REFUSED(no_message, "qspi_set_recv: " MADE "a null pointer", qspi_set_recv(0, &one, 4, NULL));
REFUSED(started_nothing, "qspi_start: " MADE "a null pointer", qspi_start(NULL));
REFUSED(waited_for_nothing, "qspi_wait: " MADE "a null pointer", qspi_wait(NULL));
REFUSED(prepared_nothing, "qspi_prepare: expected memory of 8 bytes, found a null pointer", qspi_prepare(NULL, 1));

ERROR(no_message_among_many, 1, 1, "qspi_prepare: " MADE "a null pointer") {
  qspi_msg_t msgs[2] = {sending(0, &one, 1), NULL};
  qspi_prepare(msgs, 2);
}

REFUSED(negative_number, "qspi_prepare: expected a number of 0 or more, found -1", qspi_prepare(both, -1));

ERROR(negative_pieces, 1, 1, "qspi_set_send_multi: expected a number of 0 or more, found -1") {
  void* at[1] = {&one};
  size_t sizes[1] = {4};
  qspi_set_send_multi(0, at, sizes, -1, qspi_create_msg());
}

REFUSED(no_pieces, "qspi_set_send_multi: expected memory of 8 bytes, found a null pointer",
        qspi_set_send_multi(0, NULL, NULL, 1, qspi_create_msg()));
REFUSED(no_sizes, "qspi_set_send_multi: expected memory of 8 bytes, found a null pointer", void* at[1] = {&one};
        qspi_set_send_multi(0, at, NULL, 1, qspi_create_msg()));

ERROR(no_second_piece, 1, 1, "qspi_set_send_multi: expected memory of 4 bytes, found a null") {
  void* at[3] = {NULL, &one, NULL}; /* the first has no bytes */
  size_t sizes[3] = {0, 4, 4};
  qspi_set_send_multi(0, at, sizes, 3, qspi_create_msg());
}

REFUSED(endless, "qspi_set_recv: expected at most the", qspi_set_recv(0, &one, SIZE_MAX, qspi_create_msg()));
REFUSED(half_endless, "qspi_set_send: expected at most the",
        qspi_set_send(0, &one, (size_t)1 << 63, qspi_create_msg()));
REFUSED(larger_than_memory, "bytes that this machine has, found 1125899906842624",
        qspi_set_send(0, &one, (size_t)1 << 50, qspi_create_msg()));

ERROR(sum_of_sizes, 1, 1, "qspi_set_send_multi: expected at most the") { /* 0, if it could wrap round */
  void* at[2] = {&two[0], &two[1]};
  size_t sizes[2] = {(size_t)1 << 63, (size_t)1 << 63};
  qspi_set_send_multi(0, at, sizes, 2, qspi_create_msg());
}

ERROR(different_sizes, 2, 1, "rank 0 sends 8 bytes to rank 1, which expects 4") {
  qspi_msg_t msg = my_rank() == 0 ? sending(1, two, 2) : receiving(0, two, 1);
  qspi_prepare(&msg, 1);
  qspi_wait(msg);
}

ERROR(one_twice, 1, 1, "qspi_prepare: expected every message once") {
  qspi_msg_t msgs[2] = {receiving(0, &one, 1), NULL};
  msgs[1] = msgs[0];
  qspi_prepare(msgs, 2);
}

REFUSED(started_twice, "qspi_start: the message has been started already", prepare_both(); qspi_start(both[0]);
        qspi_start(both[0]));
REFUSED(set_under_way, "qspi_set_recv: a message cannot be set while it is under way", prepare_both();
        qspi_start(both[0]); qspi_set_recv(0, &one, 4, both[0]));
REFUSED(prepared_under_way, "qspi_prepare: a message cannot be prepared while", prepare_both(); qspi_start(both[0]);
        qspi_prepare(both, 2));
REFUSED(freed_under_way, "qspi_free_msg: a message cannot be freed while it is under way", prepare_both();
        qspi_start(both[0]); qspi_free_msg(both[0]));

ERROR(freed_twice, 1, 1, "qspi_free_msg: " MADE "one that was freed") {
  qspi_msg_t msg = sending(0, &one, 1);
  qspi_free_msg(msg);
  qspi_free_msg(msg);
}

REFUSED(started_freed, "qspi_start: " MADE "one that was freed", prepare_both(); qspi_free_msg(both[1]);
        qspi_start(both[1]));
REFUSED(waited_for_freed, "qspi_wait: " MADE "one that was freed", exchange_both(); qspi_free_msg(both[0]);
        qspi_wait(both[0]));

ERROR(set_freed, 1, 1, "qspi_set_send: " MADE "one that was freed") {
  qspi_msg_t msg = qspi_create_msg();
  qspi_free_msg(msg);
  qspi_set_send(0, &one, 4, msg);
}

ERROR(prepared_freed, 1, 1, "qspi_prepare: " MADE "one that was freed") {
  qspi_msg_t msg = sending(0, &one, 1);
  qspi_free_msg(msg);
  qspi_prepare(&msg, 1);
}

ERROR(freed_and_made_again, 1, 1, "qspi_prepare: " MADE "one that was freed") { /* another message has its place */
  qspi_msg_t msg = sending(0, &one, 1);
  qspi_free_msg(msg);
  CHECK(sending(0, &one, 1) != msg);
  qspi_prepare(&msg, 1);
}

REFUSED(not_a_message, "qspi_wait: " MADE "something else", qspi_wait((qspi_msg_t)&two));
REFUSED(waited_twice, "qspi_wait: the message has been waited for already", exchange_both(); qspi_wait(both[0]));

ERROR(waited_twice_for_peer, 2, 1,
      "qspi_wait: the message has been waited for already") { /* each rank would wait for ever */
  qspi_msg_t msgs[2] = {receiving(1 - my_rank(), &two[0], 1), sending(1 - my_rank(), &one, 1)};
  qspi_prepare(msgs, 2);
  for (int i = 0; i < 2; ++i) qspi_start(msgs[i]);
  for (int i = 0; i < 2; ++i) qspi_wait(msgs[i]);
  qspi_wait(msgs[0]);
}

ERROR(waited_too_often, 2, 1, "waited") { /* by a program that leaves starting to qspi_wait */
  setenv("ONEHOP_TIMEOUT", "1", 1);
  qspi_msg_t msg = my_rank() == 0 ? receiving(1, &one, 1) : sending(0, &one, 1);
  qspi_prepare(&msg, 1);
  if (my_rank() == 1) qspi_start(msg);
  qspi_wait(msg);
  if (my_rank() == 0) qspi_wait(msg);
  double x = 0;
  qspi_sum_double(&x);
}

ERROR(both_send, 2, 1, "waited") {
  setenv("ONEHOP_TIMEOUT", "1", 1);
  qspi_msg_t msg = sending(1 - my_rank(), &one, 1);
  qspi_prepare(&msg, 1);
}

REFUSED(wrong_variable, "qspi_prepare: ONEHOP_QSPI_TOGETHER: expected 0 or 1, found 'yes'",
        setenv("ONEHOP_QSPI_TOGETHER", "yes", 1);
        prepare_both());
REFUSED(never_sent, "rank 0 waits for a message from itself", prepare_both(); qspi_wait(both[0]));
REFUSED(no_number, "qspi_sum_double: expected memory of 8 bytes, found a null pointer", qspi_sum_double(NULL));
REFUSED(number_between, "qspi_sum_double: expected memory at a multiple of 8 bytes, found address ",
        static double pair[2];
        qspi_sum_double((double*)((char*)pair + 4)));
REFUSED(list_between, "qspi_prepare: expected memory at a multiple of 8 bytes, found address ",
        qspi_prepare((qspi_msg_t*)((char*)both + 1), 1));
REFUSED(started_after_finalize, "found one that was prepared before qspi_finalize", exchange_both(); qspi_finalize();
        qspi_start(both[0]));
REFUSED(prepared_after_finalize, "qspi_prepare: expected to be called before", qspi_finalize(); prepare_both());

ERROR(summed_after_finalize, 1, 1, "qspi_sum_double: expected to be called before") {
  double x = 0;
  qspi_finalize();
  qspi_sum_double(&x);
}

ERROR(prepared_before_finalize, 1, 1,
      "found one that was prepared before qspi_finalize") { /* and started when the ranks have met again */
  prepare_both();
  qspi_start(both[0]);
  qspi_finalize();
  qspi_init();
  qspi_free_msg(both[0]);
  exchange_both();
  qspi_finalize();
  qspi_init();
  qspi_start(both[0]);
}

REFUSED(finalized_twice, "qspi_finalize: expected to be called once", qspi_finalize(); qspi_finalize());

static void start_to_send(void) { qspi_start(both[1]); }

REFUSED(started_by_child, "was forked from", prepare_both(); in_child(start_to_send));
REFUSED(prepared_by_child, "was forked from", prepare_both(); in_child(prepare_both));

static void sum(void) {
  double x = 1;
  qspi_sum_double(&x);
}

ERROR(summed_by_child, 2, 1, "was forked from") {
  sum();
  in_child(sum);
}

ERROR(lost_peer, 2, 3, "rank 1") {
  qspi_msg_t msg = my_rank() == 0 ? receiving(1, &one, 1) : sending(0, &one, 1);
  qspi_prepare(&msg, 1);
  if (my_rank() == 1) _exit(0);
  qspi_wait(msg);
}
