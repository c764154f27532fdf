/* Shared by the tests of the drop-in interfaces: checks that end the rank, and the rank's number. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline int environment_number(const char* name, int otherwise) {
  const char* value = getenv(name);
  return value == NULL ? otherwise : atoi(value);
}

static inline int my_rank(void) { return environment_number("RANK", 0); }
static inline int all_ranks(void) { return environment_number("WORLD_SIZE", 1); }

#define CHECK(condition)                                                                            \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      fprintf(stderr, "rank %d: %s:%d: not true: %s\n", my_rank(), __FILE__, __LINE__, #condition); \
      exit(1);                                                                                      \
    }                                                                                               \
  } while (0)

/* One error that a test program can provoke: see errors.sh. */
struct error_case {
  const char* name;
  int ranks;
  int status;
  const char* text;
  void (*make)(void);
  const struct error_case* next;
};

/* Of all files of a program. */
__attribute__((weak)) const struct error_case* error_cases;

/* Before the body of a function that provokes the error. */
#define ERROR(function, ranks, status, text)                                           \
  static void function(void);                                                          \
  __attribute__((constructor)) static void add_##function(void) {                      \
    static struct error_case added = {#function, ranks, status, text, function, NULL}; \
    added.next = error_cases;                                                          \
    error_cases = &added;                                                              \
  }                                                                                    \
  static void function(void)

/* An error of one rank that one statement provokes. */
#define REFUSED(function, text, ...)           \
  ERROR(function, 1, 1, text) { __VA_ARGS__; } \
  static void function(void)

/* Handles `PROGRAM errors` and `PROGRAM error NAME`. Returns whether the program was called like that. */
static inline int made_error(int argc, char** argv) {
  if (argc < 2) return 0;
  for (const struct error_case* one = error_cases; one != NULL; one = one->next) {
    if (strcmp(argv[1], "errors") == 0) {
      printf("%s %d %d %s\n", one->name, one->ranks, one->status, one->text);
    } else if (argc > 2 && strcmp(argv[2], one->name) == 0) {
      one->make();
    }
  }
  return 1;
}

/* Runs a case in a forked child, and ends with its exit status. */
static inline void in_child(void (*make)(void)) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    make();
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

/* A value that depends on the sender, the receiver, the step and the position in the message. */
static inline int pattern(int from, int to, int step, int at) { return ((from * 31 + to) * 1009 + step) * 8191 + at; }
