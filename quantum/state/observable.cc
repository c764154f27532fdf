#include "onehop/quantum/observable.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

#include "onehop/error.h"
#include "quantum/device/device_amplitudes.h"
#include "quantum/state/pauli_masks.h"
#include "quantum/state/precision.h"
#include "src/base/text.h"
#include "src/group/require_same.h"

namespace onehop::quantum {
namespace {

using Sum = std::complex<double>;

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  // Calls visit(term) for each term.
  template <class Visit>
  void for_each(Visit&& visit) {
    bool is_first = true;
    skip();
    while (at_ < text_.size()) {
      double sign = 1;
      if (text_[at_] == '+' || text_[at_] == '-') {
        sign = text_[at_++] == '-' ? -1 : 1;
      } else if (!is_first) {
        fail("'+' or '-'");
      }
      visit(term(sign));
      is_first = false;
    }
    if (is_first) fail("a sum of Pauli strings such as 'Z0 Z1 + 0.5*X2'");
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    constexpr std::size_t longest = 200;  // characters of the text that a message quotes
    const std::string quoted = text_.size() > longest ? "" : " '" + text_ + "'";
    throw BadInput("observable" + quoted + ", column " + std::to_string(at_ + 1) + ": expected " + expected +
                   ", found " + (at_ < text_.size() ? "'" + text_.substr(at_, 8) + "'" : "the end"));
  }

  PauliTerm term(double sign) {
    PauliTerm term{sign};
    skip();
    bool complete = false;
    if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '.')) {
      char* end = nullptr;
      term.coefficient *= base::decimal_number(text_.c_str() + at_, &end);
      if (!std::isfinite(term.coefficient.real())) fail("a weight that a double holds");
      at_ = static_cast<std::size_t>(end - text_.c_str());
      complete = true;
      skip();
      if (at_ < text_.size() && text_[at_] == '*') ++at_, complete = false;
      skip();
    }
    // Not strchr, which also finds the zero at the end of its list.
    while (at_ < text_.size() && std::string_view("IXYZ").find(text_[at_]) != std::string_view::npos) {
      add(term);
      complete = true;
    }
    if (!complete) fail("a number, or I, X, Y or Z with its qubit");
    return term;
  }

  void add(PauliTerm& term) {
    const char letter = text_[at_++];
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      char* end = nullptr;
      const long qubit = std::strtol(text_.c_str() + at_, &end, 10);
      if (qubit > 61) fail("a qubit from 0 to 61");
      for (const auto& [other, already] : term.paulis) {
        if (other == qubit) fail("each qubit once in a string");
      }
      at_ = static_cast<std::size_t>(end - text_.c_str());
      if (letter != 'I') term.paulis.emplace_back(static_cast<int>(qubit), letter);
    } else if (letter != 'I') {
      fail("the qubit of " + std::string(1, letter));
    }
    skip();
    if (at_ < text_.size() && text_[at_] == '*') ++at_, skip();
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

// Evaluates many Pauli strings in one state.
class Evaluation {
 public:
  Evaluation(State& state, std::vector<Masks> strings)
      : state_(state), strings_(std::move(strings)), values_(strings_.size()) {}

  std::vector<Sum> run() {
    std::vector<std::size_t> open(strings_.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    for (;;) {
      std::vector<std::size_t> local;
      std::vector<std::size_t> others;
      for (const std::size_t i : open)
        (on_bits(strings_[i].x) >> state_.local_bits() == 0 ? local : others).push_back(i);
      evaluate_local(local);
      open = std::move(others);
      if (open.empty()) break;
      if (!exchange_for(open)) open = evaluate_with_partner(open);
    }
    sum_over_ranks(state_.group(), values_);
    return std::move(values_);
  }

 private:
  [[nodiscard]] std::uint64_t on_bits(std::uint64_t qubits) const { return quantum::on_bits(state_, qubits); }

  // The values of the qubits on rank bits, as a mask.
  [[nodiscard]] std::uint64_t held() const {
    return (static_cast<std::uint64_t>(state_.group().rank()) << state_.local_bits()) ^ state_.flips();
  }

  // The factor of the part of a string with these masks, where `row` has the values of the bits in the left state.
  static Sum factor(std::uint64_t x, std::uint64_t z, std::uint64_t row) {
    // <0|Y|1> = -i and <1|Y|0> = i, which is (-1)^row times -i.
    static constexpr std::array<Sum, 4> powers{Sum(1), Sum(0, -1), Sum(-1), Sum(0, 1)};
    const Sum power = powers[static_cast<std::size_t>(std::popcount(x & z)) % 4];
    return std::popcount(z & row) % 2 != 0 ? -power : power;
  }

  void evaluate_local(const std::vector<std::size_t>& which) {
    if (which.empty()) return;
    const DeviceAmplitudes* const device = state_.on_device();
    if (device == nullptr && state_.windows() > 1) return evaluate_windows(which);
    const std::uint64_t inside = (std::uint64_t{1} << state_.local_bits()) - 1;
    std::vector<LocalPauli> paulis;
    for (const std::size_t i : which) {
      paulis.push_back({on_bits(strings_[i].x), on_bits(strings_[i].z) & inside});
    }
    std::vector<Sum> products(which.size());
    if (device != nullptr) device->pauli_products(*device, paulis, products);
    with_type(state_.precision(), [&]<typename T>() {
      if (device != nullptr) return;
      std::vector<std::complex<T>> memory;
      const auto all = state_.piece<T>(0, std::size_t{1} << state_.local_bits(), memory);
      pauli_products<T>(all, all, paulis, products, state_.engine());
    });
    for (std::size_t k = 0; k < which.size(); ++k) {
      const std::uint64_t z = on_bits(strings_[which[k]].z) & ~inside;
      values_[which[k]] = products[k] * factor(0, z, held());
    }
  }

  void evaluate_windows(const std::vector<std::size_t>& which) {
    const int bits = state_.window_bits();
    const std::size_t size = std::size_t{1} << bits;
    std::map<std::uint64_t, std::vector<std::size_t>> by_shift;  // XOR of the numbers of both windows
    for (const std::size_t i : which) by_shift[on_bits(strings_[i].x) >> bits].push_back(i);
    with_type(state_.precision(), [&]<typename T>() {
      std::vector<std::complex<T>> memory;
      std::vector<std::complex<T>> other;
      for (std::uint64_t w = 0; w < state_.windows(); ++w) {
        const auto mine = state_.piece<T>(w * size, size, memory);
        for (const auto& [shift, strings] : by_shift) {
          const auto theirs = shift == 0 ? mine : state_.piece<T>((w ^ shift) * size, size, other);
          add_products<T>(strings, mine, theirs, w, bits);
        }
      }
    });
  }

  // Moves the qubits on which the fewest open strings have X or Y to rank bits. Returns false, without an exchange, if
  // evaluate_with_partner() would deal with more strings than become local.
  bool exchange_for(const std::vector<std::size_t>& open) {
    std::vector<int> uses(static_cast<std::size_t>(state_.qubits()));
    for (const std::size_t i : open) {
      for (std::uint64_t x = strings_[i].x; x != 0; x &= x - 1) ++uses[static_cast<std::size_t>(std::countr_zero(x))];
    }
    std::vector<int> order(uses.size());
    std::iota(order.begin(), order.end(), 0);
    // Break ties in favour of high bits, so that qubits on rank bits stay there.
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      const auto key = [&](int q) {
        return std::pair(uses[static_cast<std::size_t>(q)], -state_.bits()[static_cast<std::size_t>(q)]);
      };
      return key(a) < key(b);
    });
    order.resize(static_cast<std::size_t>(state_.qubits() - state_.local_bits()));
    std::uint64_t remote = 0;
    for (const int qubit : order) remote |= std::uint64_t{1} << qubit;
    const auto gained =
        std::count_if(open.begin(), open.end(), [&](std::size_t i) { return (strings_[i].x & remote) == 0; });
    std::map<std::uint64_t, int> partners;
    int most = 0;
    for (const std::size_t i : open) most = std::max(most, ++partners[on_bits(strings_[i].x) >> state_.local_bits()]);
    if (gained < most) return false;
    swap_in(remote);
    return true;
  }

  void swap_in(std::uint64_t remote) {
    std::vector<int> to_rank;
    std::vector<int> to_local;
    for (int qubit = 0; qubit < state_.qubits(); ++qubit) {
      const int bit = state_.bits()[static_cast<std::size_t>(qubit)];
      const bool wanted = (remote >> qubit & 1U) != 0;
      if (wanted && bit < state_.local_bits()) to_rank.push_back(bit);
      if (!wanted && bit >= state_.local_bits()) to_local.push_back(bit);
    }
    std::vector<std::pair<int, int>> swaps;
    for (std::size_t i = 0; i < to_rank.size(); ++i) swaps.emplace_back(to_rank[i], to_local[i]);
    state_.exchange(swaps);
  }

  // Evaluates the strings that need the most frequent partner rank, whose amplitudes pass through a bounded buffer.
  // Returns the other strings.
  std::vector<std::size_t> evaluate_with_partner(const std::vector<std::size_t>& open) {
    std::map<std::uint64_t, std::vector<std::size_t>> by_partner;
    for (const std::size_t i : open) by_partner[on_bits(strings_[i].x) >> state_.local_bits()].push_back(i);
    const auto most = std::max_element(by_partner.begin(), by_partner.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    with_type(state_.precision(), [&]<typename T>() { stream<T>(most->first, most->second); });
    std::vector<std::size_t> rest;
    for (const auto& [partner, which] : by_partner) {
      if (partner != most->first) rest.insert(rest.end(), which.begin(), which.end());
    }
    return rest;
  }

  template <typename T>
  void stream(std::uint64_t partner, const std::vector<std::size_t>& which) {
    const int chunk_bits = std::min(state_.local_bits(), 16);
    const std::size_t chunk = std::size_t{1} << chunk_bits;
    std::vector<std::complex<T>> mine;
    std::map<std::uint64_t, std::vector<std::size_t>> by_shift;  // XOR of the chunk numbers of both ranks
    for (const std::size_t i : which) by_shift[in_rank(strings_[i].x) >> chunk_bits].push_back(i);
    stream_partner<T>(
        state_, partner, chunk_bits, by_shift,
        [&](const std::vector<std::size_t>& strings, std::span<const std::complex<T>> got, std::uint64_t c) {
          add_products<T>(strings, state_.piece<T>(c * chunk, chunk, mine), got, c, chunk_bits);
        });
  }

  [[nodiscard]] std::uint64_t in_rank(std::uint64_t qubits) const {
    return on_bits(qubits) & ((std::uint64_t{1} << state_.local_bits()) - 1);
  }

  template <typename T>
  void add_products(const std::vector<std::size_t>& strings, std::span<const std::complex<T>> mine,
                    std::span<const std::complex<T>> theirs, std::uint64_t chunk, int chunk_bits) {
    const std::uint64_t inside = (std::uint64_t{1} << chunk_bits) - 1;
    const std::uint64_t row = held() | chunk << chunk_bits;
    std::vector<LocalPauli> paulis;
    for (const std::size_t i : strings)
      paulis.push_back({on_bits(strings_[i].x) & inside, on_bits(strings_[i].z) & inside});
    std::vector<Sum> products(strings.size());
    pauli_products<T>(mine, theirs, paulis, products, state_.engine());
    for (std::size_t k = 0; k < strings.size(); ++k) {
      const Masks& masks = strings_[strings[k]];
      values_[strings[k]] += products[k] * factor(on_bits(masks.x) & ~inside, on_bits(masks.z) & ~inside, row);
    }
  }

  State& state_;
  std::vector<Masks> strings_;
  std::vector<Sum> values_;
};

}  // namespace

// Reads the text twice, so that a text with an error takes no memory, and any other no more than its terms.
PauliSum PauliSum::parse(const std::string& text) {
  std::size_t count = 0;
  Parser(text).for_each([&](const PauliTerm&) { ++count; });
  PauliSum sum;
  sum.terms.reserve(count);
  Parser(text).for_each([&](PauliTerm&& term) { sum.terms.push_back(std::move(term)); });
  return sum;
}

int PauliSum::qubits() const noexcept {
  int count = 0;
  for (const PauliTerm& term : terms) {
    for (const auto& [qubit, letter] : term.paulis) count = std::max(count, qubit + 1);
  }
  return count;
}

std::vector<Sum> expectations(State& state, std::span<const PauliSum> sums) {
  onehop::detail::require_same(state.group(), "expectations", {{"observables", sums}});
  std::map<Masks, std::size_t> numbers;
  std::vector<Masks> strings;
  for (const PauliSum& sum : sums) {
    for (const PauliTerm& term : sum.terms) {
      const Masks masks = masks_of(term, state.qubits());
      if (numbers.emplace(masks, strings.size()).second) strings.push_back(masks);
    }
  }
  const std::vector<Sum> values = Evaluation(state, strings).run();
  std::vector<Sum> result;
  for (const PauliSum& sum : sums) {
    Sum total = 0;
    for (const PauliTerm& term : sum.terms)
      total += term.coefficient * values[numbers.at(masks_of(term, state.qubits()))];
    result.push_back(total);
  }
  return result;
}

}  // namespace onehop::quantum
