#include "quantum/language/values/logic.h"

#include <algorithm>

namespace onehop::quantum::language {

int Logic::assign(const Condition& condition) {
  if (static_cast<std::int64_t>(circuit_.operations.size()) >= most_) throw TooManyOperations();
  const int bit = new_bit();
  Operation made;
  made.kind = OperationKind::assign;
  made.name = "assign";
  made.clbits = {bit};
  made.condition = condition;
  circuit_.operations.push_back(std::move(made));
  return bit;
}

void Logic::copy(int target, int source) {
  if (source < 0 && zero_ < 0) zero_ = new_bit();
  Operation made;
  made.kind = OperationKind::assign;
  made.name = "assign";
  made.clbits = {target};
  made.condition = source < 0 ? Condition{{zero_}, source == zero_bit ? 1U : 0U} : Condition{{source}, 1};
  circuit_.operations.push_back(std::move(made));
}

int Logic::all_of(const std::vector<std::pair<int, int>>& wanted, bool negated) {
  const int no = negated ? one_bit : zero_bit;
  std::vector<std::pair<int, int>> required;
  for (const auto& [bit, value] : wanted) {
    if (bit < 0) {
      if ((bit == one_bit) != (value != 0)) return no;
      continue;
    }
    const auto found = std::ranges::find(required, bit, &std::pair<int, int>::first);
    if (found == required.end()) {
      required.emplace_back(bit, value);
    } else if (found->second != value) {
      return no;
    }
  }
  if (required.empty()) return negated ? zero_bit : one_bit;
  if (required.size() == 1 && (required[0].second != 0) != negated) return required[0].first;
  if (required.size() > 64) {
    std::vector<std::pair<int, int>> rest(required.begin() + 63, required.end());
    required.resize(63);
    required.emplace_back(all_of(rest), 1);
    return all_of(required, negated);
  }
  std::ranges::sort(required);
  const bool lasting = required[0].first >= first_hidden;
  std::vector<std::pair<int, int>> key = required;
  key.emplace_back(-1, negated ? 1 : 0);
  if (const auto found = known_.find(key); lasting && found != known_.end()) return found->second;
  Condition condition;
  condition.negated = negated;
  for (const auto& [bit, value] : required) {
    condition.value |= static_cast<std::uint64_t>(value) << condition.clbits.size();
    condition.clbits.push_back(bit);
  }
  const int made = assign(condition);
  if (lasting) known_.emplace(std::move(key), made);
  return made;
}

int Logic::any_of(const Bits& bits) {
  std::vector<std::pair<int, int>> none;
  for (const int bit : bits) none.emplace_back(bit, 0);
  return all_of(none, true);
}

int Logic::different(int a, int b) {
  if (a < 0) std::swap(a, b);
  if (b == zero_bit || a == b) return a == b ? zero_bit : a;
  if (b == one_bit) return negation(a);
  return either(all_of({{a, 1}, {b, 0}}), all_of({{a, 0}, {b, 1}}));
}

int Logic::choice(int condition, int yes, int no) {
  if (yes == no || condition == one_bit) return yes;
  if (condition == zero_bit) return no;
  return either(both(condition, yes), all_of({{condition, 0}, {no, 1}}));
}

int Logic::equal(const Bits& a, const Bits& b) {
  std::vector<std::pair<int, int>> wanted;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const bool left = a[k] < 0;
    if (left || b[k] < 0) {  // a comparison with a constant needs no further bit
      wanted.emplace_back(left ? b[k] : a[k], (left ? a[k] : b[k]) == one_bit ? 1 : 0);
    } else {
      wanted.emplace_back(different(a[k], b[k]), 0);
    }
  }
  return all_of(wanted);
}

int Logic::less(const Bits& a, const Bits& b) {
  int answer = zero_bit;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const int below = all_of({{a[k], 0}, {b[k], 1}});
    const int above = all_of({{a[k], 1}, {b[k], 0}});
    answer = either(below, all_of({{above, 0}, {answer, 1}}));
  }
  return answer;
}

Bits Logic::sum(const Bits& a, const Bits& b, int carry) {
  Bits found;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const int half = different(a[k], b[k]);
    found.push_back(different(half, carry));
    carry = either(both(a[k], b[k]), both(half, carry));
  }
  return found;
}

Bits Logic::difference(const Bits& a, const Bits& b) {
  Bits opposite;
  for (const int bit : b) opposite.push_back(negation(bit));
  return sum(a, opposite, one_bit);
}

Bits Logic::product(const Bits& a, const Bits& b) {
  Bits found(a.size(), zero_bit);
  for (std::size_t k = 0; k < b.size(); ++k) {
    if (b[k] == zero_bit) continue;
    Bits row(k, zero_bit);
    for (std::size_t j = 0; row.size() < a.size(); ++j) row.push_back(both(a[j], b[k]));
    found = sum(found, row);
  }
  return found;
}

Bits Logic::quotient(const Bits& a, const Bits& b, Bits& rest) {
  Bits found(a.size(), zero_bit);
  Bits divisor = b;
  divisor.push_back(zero_bit);
  rest.assign(divisor.size(), zero_bit);
  for (std::size_t k = a.size(); k-- > 0;) {
    rest.insert(rest.begin(), a[k]);
    rest.pop_back();
    found[k] = negation(less(rest, divisor));
    Bits opposite;  // of the divisor if it fits, else of 0
    for (const int bit : divisor) opposite.push_back(all_of({{bit, 1}, {found[k], 1}}, true));
    rest = sum(rest, opposite, one_bit);
  }
  rest.pop_back();
  return found;
}

Bits Logic::turned(const Bits& a, int negative) {
  Bits found;
  for (const int bit : a) found.push_back(different(bit, negative));
  return sum(found, Bits(a.size(), zero_bit), negative);
}

Condition Logic::condition_of(int bit) {
  if (bit < first_hidden || circuit_.operations.empty()) return {{bit}, 1};
  const Operation& last = circuit_.operations.back();
  const bool newest = bit == first_hidden + circuit_.hidden_clbits - 1;
  if (!newest || last.kind != OperationKind::assign || last.clbits != std::vector<int>{bit}) return {{bit}, 1};
  Condition found = last.condition;
  std::erase_if(known_, [bit](const auto& one) { return one.second == bit; });
  circuit_.operations.pop_back();
  --circuit_.hidden_clbits;
  return found;
}

}  // namespace onehop::quantum::language
