#include "measure/permutation.h"

#include <cstring>
#include <random>
#include <set>

#include "onehop/error.h"

namespace onehop::measure {

PermuteBitsSpec swap_bits(int local_bits, const std::vector<std::pair<int, int>>& pairs, std::int64_t element_bytes,
                          int ranks) {
  PermuteBitsSpec spec;
  spec.local_bits = spec.bits = local_bits;
  while (1 << (spec.bits - local_bits) < ranks) ++spec.bits;
  for (int bit = 0; bit < spec.bits; ++bit) spec.permutation.push_back(bit);
  for (const auto& [a, b] : pairs) {
    std::swap(spec.permutation.at(static_cast<std::size_t>(a)), spec.permutation.at(static_cast<std::size_t>(b)));
  }
  spec.element_bytes = element_bytes;
  return spec;
}

Witnesses::Witnesses(const PermuteBitsSpec& spec, int rank, std::span<std::byte> state) {
  std::mt19937_64 random(spec.permutation.size());
  const std::uint64_t mask = (std::uint64_t{1} << spec.bits) - 1;
  std::set<std::uint64_t> chosen;
  for (std::uint64_t number = 0; number < 64; ++number) {
    const std::uint64_t from = random() & mask;
    if (!chosen.insert(from).second) continue;  // chosen before, in a small state
    std::uint64_t to = 0;
    for (int bit = 0; bit < spec.bits; ++bit) {
      to |= (from >> bit & 1) << spec.permutation[static_cast<std::size_t>(bit)];
    }
    add(spec, rank, state, from, number, before_);
    add(spec, rank, state, to, number, after_);
  }
}

void Witnesses::write() noexcept {
  ++run_;
  for (const Mark& mark : before_) {
    const std::uint64_t value = word(mark);
    std::memcpy(mark.place, &value, sizeof value);
  }
}

void Witnesses::check(const std::string& candidate) const {
  for (const Mark& mark : after_) {
    std::uint64_t value = 0;
    std::memcpy(&value, mark.place, sizeof value);
    if (value != word(mark)) {
      throw Error(candidate + " delivered wrong data in run " + std::to_string(run_));
    }
  }
}

// The bits of a float64 from 1 to 2, as codecs expect.
std::uint64_t Witnesses::word(const Mark& mark) const noexcept {
  return std::uint64_t{0x3ff} << 52 | ((run_ << 8 | mark.number) & 0xffffffffffU) << 12;
}

void Witnesses::add(const PermuteBitsSpec& spec, int rank, std::span<std::byte> state, std::uint64_t index,
                    std::uint64_t number, std::vector<Mark>& marks) {
  if (static_cast<int>(index >> spec.local_bits) != rank) return;
  const std::uint64_t element = index & ((std::uint64_t{1} << spec.local_bits) - 1);
  marks.push_back({state.data() + element * static_cast<std::uint64_t>(spec.element_bytes), number});
}

namespace {

auto checked_element_bytes(const PermuteBitsSpec& spec) {
  if (spec.element_bytes >= 8) return spec.element_bytes;
  throw BadInput("bench permutation needs elements of at least 8 bytes, found " + std::to_string(spec.element_bytes));
}

}  // namespace

PermutationRounds::PermutationRounds(const Group& group, const PermuteBitsSpec& spec, TransportKind transport)
    : arena_(group),
      transport_(transport),
      state_(group.allocate(checked_element_bytes(spec) << spec.local_bits)),
      witnesses_(spec, group.rank(), state_.bytes()) {
  add("onehop", Role::ours, permute_bits(spec, group.rank()));
}

void PermutationRounds::add(const std::string& name, Role role, std::function<void()> run, bool exact) {
  candidates_.push_back({name, role, [this, name, run = std::move(run), exact](int repetitions) {
                           for (int i = 0; i < repetitions; ++i) {
                             witnesses_.write();
                             run();
                             if (exact) witnesses_.check(name);
                           }
                         }});
}

void PermutationRounds::add(const std::string& name, Role role, const Schedule& part, bool exact) {
  const std::vector<std::span<std::byte>> arrays = {state_.bytes()};
  Plan& plan =
      *plans_.emplace_back(std::make_unique<Plan>(arena_.group(), part, arrays, PlanOptions{.transport = transport_}));
  add(name, role, [&plan] { plan.run(); }, exact);
}

std::vector<Samples> PermutationRounds::run(const Effort& effort) {
  auto measured = run_rounds(arena_, candidates_, effort);
  arena_.group().barrier();  // no rank may free its state while others use it
  return measured;
}

}  // namespace onehop::measure
