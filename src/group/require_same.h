// Compares the arguments of a collective function between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "onehop/error.h"
#include "onehop/group.h"
#include "src/base/fingerprint.h"

namespace onehop::detail {

// A value that all ranks must pass: a number, an enum, a range of them, or the hash of something else.
struct Argument {
  std::string_view name;
  base::Key hash;
  std::string_view text = {};  // the value, if errors are to quote it
  template <typename T>
  Argument(std::string_view the_name, const T& value) : name(the_name), hash(base::hash_of(value)) {}
  Argument(std::string_view the_name, const std::string& value)
      : name(the_name), hash(base::hash_of(value)), text(value) {}
};

// Throws Mismatch on every rank unless all of them call this function with the same arguments: the result would be a
// mixture. One all-gather, and another one for the message.
void require_same(const Group& group, std::string_view function, std::span<const Argument> arguments);
inline void require_same(const Group& group, std::string_view function, std::initializer_list<Argument> arguments) {
  require_same(group, function, std::span(arguments.begin(), arguments.size()));
}

// Returns the bytes of all ranks, as many of each. Throws Mismatch on every rank unless all of them call this function
// with the same argument, which the same all-gather compares.
[[nodiscard]] Gathered allgather_same(const Group& group, std::string_view function, const Argument& argument,
                                      std::span<const std::byte> mine);

// For a rank that leaves a collective function before its first all-gather, because it refuses its arguments: takes
// part in that all-gather, so that all other ranks throw Mismatch with this text. Waits for them for 10 s at most.
void refuse(const Group& group, std::string_view text) noexcept;

// Checks arguments that only some ranks may refuse.
template <class Check>
void check_together(const Group& group, const Check& check) {
  try {
    check();
  } catch (const BadInput& error) {
    refuse(group, error.what());
    throw;
  }
}

// The all-gathers that this thread has begun in groups of several ranks.
[[nodiscard]] std::uint64_t allgathers_begun() noexcept;

}  // namespace onehop::detail
