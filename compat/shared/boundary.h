// What all doors need. A door has a C interface, which lets no exception out, and its programs know no errors but the end.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "onehop/error.h"
#include "onehop/group.h"

// The functions of a door are all that its library shows.
#define ONEHOP_DOOR extern "C" __attribute__((visibility("default")))

namespace onehop::door {

// Says why and ends this rank at once, without running what programs and MPI do at exit: they might wait for others. The
// launcher then ends the other ranks.
[[noreturn]] inline void end_program(const char* where, const std::string& why, int status = EXIT_FAILURE) {
  std::fflush(nullptr);
  std::fprintf(stderr, "onehop: %s: %s\n", where, why.c_str());
  std::fflush(stderr);
  std::_Exit(status);
}

// Runs the body of a function of a door. What it throws ends the program: with status 3 where a peer was lost, as everywhere in
// onehop, so that a launcher can tell the culprit from its victims.
template <class Body>
auto guarded(const char* where, Body&& body) noexcept -> std::invoke_result_t<Body> {
  try {
    return std::forward<Body>(body)();
  } catch (const PeerLost& error) {
    end_program(where, error.what(), 3);
  } catch (const std::exception& error) {
    end_program(where, error.what());
  }
}

}  // namespace onehop::door
