// Compares the arguments of a collective function between ranks.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

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

}  // namespace onehop::detail
