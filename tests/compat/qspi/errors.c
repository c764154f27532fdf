/* Errors that end the program. */
#include <stdint.h>

#include "compat/qspi.h"
#include "tests/compat/check.h"
#include "tests/compat/qspi/parts.h"

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

static void not_set(void) {
  qspi_msg_t msg = qspi_create_msg();
  qspi_prepare(&msg, 1);
}

static void not_prepared(void) { qspi_start(sending(0, &one, 1)); }
static void waited_unprepared(void) { qspi_wait(receiving(0, &one, 1)); }

static void set_again(void) { /* and so not prepared any more */
  prepare_both();
  qspi_set_send(0, &one, 4, both[1]);
  qspi_start(both[1]);
}

static void wrong_rank(void) {
  qspi_msg_t msg = sending(2, &one, 1);
  qspi_prepare(&msg, 1);
}

static void negative_rank(void) { sending(-1, &one, 1); }
static void no_buffer(void) { qspi_set_send(0, NULL, 4, qspi_create_msg()); }
static void no_message(void) { qspi_set_recv(0, &one, 4, NULL); }
static void started_nothing(void) { qspi_start(NULL); }
static void waited_for_nothing(void) { qspi_wait(NULL); }
static void prepared_nothing(void) { qspi_prepare(NULL, 1); }

static void no_message_among_many(void) {
  qspi_msg_t msgs[2] = {sending(0, &one, 1), NULL};
  qspi_prepare(msgs, 2);
}

static void negative_number(void) { qspi_prepare(both, -1); }

static void negative_pieces(void) {
  void* at[1] = {&one};
  size_t sizes[1] = {4};
  qspi_set_send_multi(0, at, sizes, -1, qspi_create_msg());
}

static void no_pieces(void) { qspi_set_send_multi(0, NULL, NULL, 1, qspi_create_msg()); }

static void no_sizes(void) {
  void* at[1] = {&one};
  qspi_set_send_multi(0, at, NULL, 1, qspi_create_msg());
}

static void no_second_piece(void) {
  void* at[3] = {NULL, &one, NULL}; /* the first has no bytes */
  size_t sizes[3] = {0, 4, 4};
  qspi_set_send_multi(0, at, sizes, 3, qspi_create_msg());
}

static void endless(void) { qspi_set_recv(0, &one, SIZE_MAX, qspi_create_msg()); }
static void half_endless(void) { qspi_set_send(0, &one, (size_t)1 << 63, qspi_create_msg()); }
static void larger_than_memory(void) { qspi_set_send(0, &one, (size_t)1 << 50, qspi_create_msg()); }

static void sum_of_sizes(void) { /* 0, if it could wrap round */
  void* at[2] = {&two[0], &two[1]};
  size_t sizes[2] = {(size_t)1 << 63, (size_t)1 << 63};
  qspi_set_send_multi(0, at, sizes, 2, qspi_create_msg());
}

static void different_sizes(void) {
  qspi_msg_t msg = my_rank() == 0 ? sending(1, two, 2) : receiving(0, two, 1);
  qspi_prepare(&msg, 1);
  qspi_wait(msg);
}

static void one_twice(void) {
  qspi_msg_t msgs[2] = {receiving(0, &one, 1), NULL};
  msgs[1] = msgs[0];
  qspi_prepare(msgs, 2);
}

static void started_twice(void) {
  prepare_both();
  qspi_start(both[0]);
  qspi_start(both[0]);
}

static void set_under_way(void) {
  prepare_both();
  qspi_start(both[0]);
  qspi_set_recv(0, &one, 4, both[0]);
}

static void prepared_under_way(void) {
  prepare_both();
  qspi_start(both[0]);
  qspi_prepare(both, 2);
}

static void freed_under_way(void) {
  prepare_both();
  qspi_start(both[0]);
  qspi_free_msg(both[0]);
}

static void freed_twice(void) {
  qspi_msg_t msg = sending(0, &one, 1);
  qspi_free_msg(msg);
  qspi_free_msg(msg);
}

static void started_freed(void) {
  prepare_both();
  qspi_free_msg(both[1]);
  qspi_start(both[1]);
}

static void waited_for_freed(void) {
  exchange_both();
  qspi_free_msg(both[0]);
  qspi_wait(both[0]);
}

static void set_freed(void) {
  qspi_msg_t msg = qspi_create_msg();
  qspi_free_msg(msg);
  qspi_set_send(0, &one, 4, msg);
}

static void prepared_freed(void) {
  qspi_msg_t msg = sending(0, &one, 1);
  qspi_free_msg(msg);
  qspi_prepare(&msg, 1);
}

static void freed_and_made_again(void) { /* another message has its place */
  qspi_msg_t msg = sending(0, &one, 1);
  qspi_free_msg(msg);
  CHECK(sending(0, &one, 1) != msg);
  qspi_prepare(&msg, 1);
}

static void not_a_message(void) { qspi_wait((qspi_msg_t)&two); }

static void waited_twice(void) {
  exchange_both();
  qspi_wait(both[0]);
}

static void waited_twice_for_peer(void) { /* each rank would wait for ever */
  qspi_msg_t msgs[2] = {receiving(1 - my_rank(), &two[0], 1), sending(1 - my_rank(), &one, 1)};
  qspi_prepare(msgs, 2);
  for (int i = 0; i < 2; ++i) qspi_start(msgs[i]);
  for (int i = 0; i < 2; ++i) qspi_wait(msgs[i]);
  qspi_wait(msgs[0]);
}

static void waited_too_often(void) { /* by a program that leaves starting to qspi_wait */
  setenv("ONEHOP_TIMEOUT", "1", 1);
  qspi_msg_t msg = my_rank() == 0 ? receiving(1, &one, 1) : sending(0, &one, 1);
  qspi_prepare(&msg, 1);
  if (my_rank() == 1) qspi_start(msg);
  qspi_wait(msg);
  if (my_rank() == 0) qspi_wait(msg);
  double x = 0;
  qspi_sum_double(&x);
}

static void both_send(void) {
  setenv("ONEHOP_TIMEOUT", "1", 1);
  qspi_msg_t msg = sending(1 - my_rank(), &one, 1);
  qspi_prepare(&msg, 1);
}

static void wrong_variable(void) {
  setenv("ONEHOP_QSPI_TOGETHER", "yes", 1);
  prepare_both();
}

static void never_sent(void) {
  prepare_both();
  qspi_wait(both[0]);
}

static void no_number(void) { qspi_sum_double(NULL); }

static void started_after_finalize(void) {
  exchange_both();
  qspi_finalize();
  qspi_start(both[0]);
}

static void prepared_after_finalize(void) {
  qspi_finalize();
  prepare_both();
}

static void summed_after_finalize(void) {
  double x = 0;
  qspi_finalize();
  qspi_sum_double(&x);
}

static void prepared_before_finalize(void) { /* and started when the ranks have met again */
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

static void finalized_twice(void) {
  qspi_finalize();
  qspi_finalize();
}

static void start_to_send(void) { qspi_start(both[1]); }

static void started_by_child(void) {
  prepare_both();
  in_child(start_to_send);
}

static void prepared_by_child(void) {
  prepare_both();
  in_child(prepare_both);
}

static void sum(void) {
  double x = 1;
  qspi_sum_double(&x);
}

static void summed_by_child(void) {
  sum();
  in_child(sum);
}

static void lost_peer(void) {
  qspi_msg_t msg = my_rank() == 0 ? receiving(1, &one, 1) : sending(0, &one, 1);
  qspi_prepare(&msg, 1);
  if (my_rank() == 1) _exit(0);
  qspi_wait(msg);
}

#define MADE "expected a message that qspi_create_msg made, found "

static const struct error_case errors[] = {
    {"unset", 1, 1, "qspi_prepare: expected a message that qspi_set_send", not_set},
    {"unprepared", 1, 1, "qspi_start: expected a message that qspi_prepare has prepared", not_prepared},
    {"waited_unprepared", 1, 1, "qspi_wait: expected a message that qspi_prepare has prepared", waited_unprepared},
    {"set_again", 1, 1, "qspi_start: expected a message that qspi_prepare has prepared", set_again},
    {"rank", 2, 1, "expected ranks from 0 to 1, found 2", wrong_rank},
    {"negative_rank", 1, 1, "qspi_set_send: expected the number of a rank, found -1", negative_rank},
    {"buffer", 1, 1, "qspi_set_send: expected memory of 4 bytes, found a null pointer", no_buffer},
    {"no_message", 1, 1, "qspi_set_recv: " MADE "a null pointer", no_message},
    {"started_nothing", 1, 1, "qspi_start: " MADE "a null pointer", started_nothing},
    {"waited_for_nothing", 1, 1, "qspi_wait: " MADE "a null pointer", waited_for_nothing},
    {"prepared_nothing", 1, 1, "qspi_prepare: expected memory of 8 bytes, found a null pointer", prepared_nothing},
    {"no_message_among_many", 1, 1, "qspi_prepare: " MADE "a null pointer", no_message_among_many},
    {"negative", 1, 1, "qspi_prepare: expected a number of 0 or more, found -1", negative_number},
    {"negative_pieces", 1, 1, "qspi_set_send_multi: expected a number of 0 or more, found -1", negative_pieces},
    {"no_pieces", 1, 1, "qspi_set_send_multi: expected memory of 8 bytes, found a null pointer", no_pieces},
    {"no_sizes", 1, 1, "qspi_set_send_multi: expected memory of 8 bytes, found a null pointer", no_sizes},
    {"no_second_piece", 1, 1, "qspi_set_send_multi: expected memory of 4 bytes, found a null", no_second_piece},
    {"endless", 1, 1, "qspi_set_recv: expected at most the", endless},
    {"half_endless", 1, 1, "qspi_set_send: expected at most the", half_endless},
    {"larger_than_memory", 1, 1, "bytes that this machine has, found 1125899906842624", larger_than_memory},
    {"sum_of_sizes", 1, 1, "qspi_set_send_multi: expected at most the", sum_of_sizes},
    {"sizes", 2, 1, "rank 0 sends 8 bytes to rank 1, which expects 4", different_sizes},
    {"one_twice", 1, 1, "qspi_prepare: expected every message once", one_twice},
    {"twice", 1, 1, "qspi_start: the message has been started already", started_twice},
    {"set_under_way", 1, 1, "qspi_set_recv: a message cannot be set while it is under way", set_under_way},
    {"prepared_under_way", 1, 1, "qspi_prepare: a message cannot be prepared while", prepared_under_way},
    {"freed_under_way", 1, 1, "qspi_free_msg: a message cannot be freed while it is under way", freed_under_way},
    {"freed_twice", 1, 1, "qspi_free_msg: " MADE "one that was freed", freed_twice},
    {"started_freed", 1, 1, "qspi_start: " MADE "one that was freed", started_freed},
    {"waited_for_freed", 1, 1, "qspi_wait: " MADE "one that was freed", waited_for_freed},
    {"set_freed", 1, 1, "qspi_set_send: " MADE "one that was freed", set_freed},
    {"prepared_freed", 1, 1, "qspi_prepare: " MADE "one that was freed", prepared_freed},
    {"freed_and_made_again", 1, 1, "qspi_prepare: " MADE "one that was freed", freed_and_made_again},
    {"not_a_message", 1, 1, "qspi_wait: " MADE "something else", not_a_message},
    {"waited_twice", 1, 1, "qspi_wait: the message has been waited for already", waited_twice},
    {"waited_twice_for_peer", 2, 1, "qspi_wait: the message has been waited for already", waited_twice_for_peer},
    {"waited_too_often", 2, 1, "waited", waited_too_often},
    {"both_send", 2, 1, "waited", both_send},
    {"variable", 1, 1, "qspi_prepare: ONEHOP_QSPI_TOGETHER: expected 0 or 1, found 'yes'", wrong_variable},
    {"never", 1, 1, "rank 0 waits for a message from itself", never_sent},
    {"no_number", 1, 1, "qspi_sum_double: expected memory of 8 bytes, found a null pointer", no_number},
    {"started_after_finalize", 1, 1, "found one that was prepared before qspi_finalize", started_after_finalize},
    {"prepared_after_finalize", 1, 1, "qspi_prepare: expected to be called before", prepared_after_finalize},
    {"summed_after_finalize", 1, 1, "qspi_sum_double: expected to be called before", summed_after_finalize},
    {"prepared_before", 1, 1, "found one that was prepared before qspi_finalize", prepared_before_finalize},
    {"finalized_twice", 1, 1, "qspi_finalize: expected to be called once", finalized_twice},
    {"started_by_child", 1, 1, "was forked from", started_by_child},
    {"prepared_by_child", 1, 1, "was forked from", prepared_by_child},
    {"summed_by_child", 2, 1, "was forked from", summed_by_child},
    {"lost", 2, 3, "rank 1", lost_peer},
};

int made_qspi_error(int argc, char** argv) { return made_error(argc, argv, errors, sizeof errors / sizeof errors[0]); }
