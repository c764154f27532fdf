// Functions of classical bits as `assign` operations on hidden bits.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "onehop/quantum/circuit.h"
#include "quantum/language/values/value.h"

namespace onehop::quantum::language {

// While a program is read, hidden bits have numbers from here on, because further classical bits may be declared.
inline constexpr int first_hidden = 1 << 28;

// Functions of classical bits need more operations than a circuit may have.
struct TooManyOperations : std::exception {};

// A hidden bit is set once. Constants are folded, and the same function of hidden bits is computed once.
class Logic {
 public:
  // Functions throw TooManyOperations once the circuit has `most` operations. Hidden bits have numbers from `first` on;
  // functions of smaller ones than `first_hidden` are computed each time.
  Logic(Circuit& circuit, std::int64_t most, int first = first_hidden)
      : circuit_(circuit), most_(most), first_(first) {}

  [[nodiscard]] int new_bit() { return first_ + circuit_.hidden_clbits++; }
  // Stores the current truth of a condition in a new hidden bit.
  int assign(const Condition& condition);
  // Sets a bit to another one or to a constant.
  void copy(int target, int source);
  // Whether each bit of the pairs has its value; if negated, whether one has not.
  int all_of(const std::vector<std::pair<int, int>>& wanted, bool negated = false);
  int any_of(const Bits& bits);
  int negation(int a) { return all_of({{a, 0}}); }
  int both(int a, int b) { return all_of({{a, 1}, {b, 1}}); }
  int either(int a, int b) { return any_of({a, b}); }
  int different(int a, int b);
  int choice(int condition, int yes, int no);
  int equal(const Bits& a, const Bits& b);
  int less(const Bits& a, const Bits& b);  // of natural numbers
  Bits sum(const Bits& a, const Bits& b) { return sum(a, b, zero_bit); }
  Bits difference(const Bits& a, const Bits& b);
  Bits product(const Bits& a, const Bits& b);
  // Of natural numbers of the same length; `rest` receives the remainder. A division by zero gives ones, and a as rest.
  Bits quotient(const Bits& a, const Bits& b, Bits& rest);
  Bits quotient(const Bits& a, const Bits& b) {
    Bits rest;
    return quotient(a, b, rest);
  }
  // -a if `negative`, else a.
  Bits turned(const Bits& a, int negative);
  // If the last operation sets this hidden bit to the truth of a condition, removes it and returns the condition.
  Condition condition_of(int bit);
  // Forgets functions in hidden bits from this one on, which a loop may set again, or never.
  void forget_from(int bit) {
    std::erase_if(known_, [bit](const auto& one) { return one.second >= bit; });
  }

 private:
  Bits sum(const Bits& a, const Bits& b, int carry);

  Circuit& circuit_;
  std::int64_t most_;
  int first_;
  std::map<std::vector<std::pair<int, int>>, int> known_;
  int zero_ = -1;  // a hidden bit that is never set
};

}  // namespace onehop::quantum::language
