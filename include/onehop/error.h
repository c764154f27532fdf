// The errors that a caller can act on. Every message says what was expected, what was found, and what to do.
// Broken invariants of onehop itself are assertions, not errors.
#pragma once

#include <stdexcept>
#include <string>

namespace onehop {

// The base of everything onehop throws. Command-line exit code 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller's arguments cannot be right: a slice outside its array, a negative width, an unknown codec. Exit code 2.
class BadInput : public Error {
 public:
  using Error::Error;
};

// Two ranks prepared things that do not fit together. Thrown on every rank of the group; names both ranks and both sizes.
class Mismatch : public Error {
 public:
  using Error::Error;
};

// A wait outlasted the group's time limit (`Group::set_timeout`).
class Timeout : public Error {
 public:
  using Error::Error;
};

// A rank has died or left while this rank waited for it. Exit code 3.
class PeerLost : public Error {
 public:
  PeerLost(int rank, const std::string& what) : Error(what), rank_(rank) {}
  // The rank that was lost, in the numbering of the group whose wait failed; -1 is the launcher.
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

}  // namespace onehop
