// The C boundary that all drop-in interfaces share. No exception may leave a C function, and the programs have no way
// to handle onehop's errors, so an error ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "onehop/error.h"
#include "onehop/group.h"

// Exports a function of a drop-in interface. Its library exports nothing else.
#define ONEHOP_COMPAT_API extern "C" __attribute__((visibility("default")))

namespace onehop::compat {

// Prints the reason to stderr and ends this rank at once. It runs no exit handlers, because those of the program or of
// MPI might wait for other ranks. The launcher then ends the other ranks.
[[noreturn]] inline void end_program(const char* where, const std::string& why, int status = EXIT_FAILURE) {
  std::fflush(nullptr);
  std::fprintf(stderr, "onehop: %s: %s\n", where, why.c_str());
  std::fflush(stderr);
  std::_Exit(status);
}

// Runs the body of a function of a drop-in interface. An exception ends the program: with status 3 if a peer was lost,
// as everywhere in onehop, so that a launcher can tell the culprit from its victims, and with EXIT_FAILURE otherwise.
template <class Body>
auto guarded(const char* where, Body&& body) noexcept -> std::invoke_result_t<Body> {
  try {
    return std::forward<Body>(body)();
  } catch (const PeerLost& error) {
    end_program(where, error.what(), 3);
  } catch (const std::bad_alloc&) {
    end_program(where, "expected enough memory, found none left");
  } catch (const std::exception& error) {
    end_program(where, error.what());
  }
}

}  // namespace onehop::compat

// Exports a function whose body is one guarded expression.
#define ONEHOP_COMPAT_FUNCTION(type, name, parameters, ...)                                  \
  ONEHOP_COMPAT_API type name parameters {                                                   \
    return onehop::compat::guarded(#name, [&] { return static_cast<type>((__VA_ARGS__)); }); \
  }
