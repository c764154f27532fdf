// The errors that a caller can act on. Every message states what was expected, what was found, and what to do.
// Violated invariants inside onehop are assertions, not errors.
#pragma once

#include <stdexcept>
#include <string>

namespace onehop {

// Base class of all exceptions of onehop. Command-line exit code 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Invalid arguments: a slice outside its array, a negative width, an unknown codec. Exit code 2.
class BadInput : public Error {
 public:
  using Error::Error;
};

// Two ranks prepared operations that disagree. Thrown on every rank of the group; names both ranks and both sizes.
class Mismatch : public Error {
 public:
  using Error::Error;
};

// A wait exceeded the time limit of the group (`Group::set_timeout`).
class Timeout : public Error {
 public:
  using Error::Error;
};

// A rank died or closed its group while this rank waited for it. Exit code 3.
class PeerLost : public Error {
 public:
  PeerLost(int rank, const std::string& what) : Error(what), rank_(rank) {}
  // The lost rank, in the numbering of the group whose wait failed; -1 is the launcher.
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

}  // namespace onehop
