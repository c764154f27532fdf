#include "bench/permutation.h"

#include <bit>
#include <cstring>
#include <random>
#include <set>
#include <string>

#include "onehop/codec.h"
#include "onehop/error.h"
#include "onehop/plan.h"

namespace onehop::bench {
namespace {

// Some elements of the state with their places before and after the permutation. The rank that has one writes it, the
// rank that receives it checks it.
class Witnesses {
 public:
  Witnesses(const PermuteBitsSpec& spec, int rank, std::span<std::byte> state) {
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

  void write() noexcept {
    ++run_;
    for (const Mark& mark : before_) {
      const std::uint64_t value = word(mark);
      std::memcpy(mark.place, &value, sizeof value);
    }
  }

  void check(const std::string& candidate) const {
    for (const Mark& mark : after_) {
      std::uint64_t value = 0;
      std::memcpy(&value, mark.place, sizeof value);
      if (value != word(mark)) {
        throw Error(candidate + " delivered wrong data in run " + std::to_string(run_));
      }
    }
  }

 private:
  struct Mark {
    std::byte* place;
    std::uint64_t number;
  };

  // The bits of a float64 from 1 to 2, as codecs expect.
  [[nodiscard]] std::uint64_t word(const Mark& mark) const noexcept {
    return std::uint64_t{0x3ff} << 52 | ((run_ << 8 | mark.number) & 0xffffffffffU) << 12;
  }

  static void add(const PermuteBitsSpec& spec, int rank, std::span<std::byte> state, std::uint64_t index,
                  std::uint64_t number, std::vector<Mark>& marks) {
    if (static_cast<int>(index >> spec.local_bits) != rank) return;
    const std::uint64_t element = index & ((std::uint64_t{1} << spec.local_bits) - 1);
    marks.push_back({state.data() + element * static_cast<std::uint64_t>(spec.element_bytes), number});
  }

  std::vector<Mark> before_;
  std::vector<Mark> after_;
  std::uint64_t run_ = 0;
};

// Reads and writes every line of `streams` equal parts of the memory, side by side.
void read_and_write(std::span<std::byte> memory, std::size_t streams) noexcept {
  struct Line {
    std::uint64_t words[8];
  };
  static volatile std::uint64_t nothing = 0;  // hides from the compiler that nothing changes
  const std::uint64_t change = nothing;
  const std::size_t part = memory.size() / streams;
  for (std::size_t i = 0; i + sizeof(Line) <= part; i += sizeof(Line)) {
    for (std::size_t s = 0; s < streams; ++s) {
      Line line;
      std::memcpy(&line, memory.data() + s * part + i, sizeof line);
      for (std::uint64_t& word : line.words) word ^= change;
      std::memcpy(memory.data() + s * part + i, &line, sizeof line);
    }
  }
}

// Bytes of the cache lines in one rank's part that hold an element that moves.
std::size_t bytes_of_lines(const PermuteBitsSpec& spec, const std::vector<std::pair<int, int>>& pairs) {
  const auto all = static_cast<std::size_t>(spec.element_bytes) << spec.local_bits;
  for (const auto& [local, unused] : pairs) {
    if (spec.element_bytes << local < 64) return all;  // every line has elements with this bit set and with it clear
  }
  return all - (all >> pairs.size());
}

// Reading and writing once each cache line that holds an element that moves.
Candidate least_work(Arena& arena, std::span<std::byte> state, const PermuteBitsSpec& spec,
                     const PermutationOptions& options) {
  const std::span<std::byte> lines = state.first(bytes_of_lines(spec, options.pairs));
  std::vector<Candidate> floors;
  for (const std::size_t streams : {1U, 2U}) {
    floors.push_back({"each line read and written once, " + std::to_string(streams) + " streams", Role::speed_of_light,
                      [lines, streams](int repetitions) {
                        for (int i = 0; i < repetitions; ++i) read_and_write(lines, streams);
                      }});
  }
  return fastest_variant(arena, std::move(floors), options.effort);
}

}  // namespace

std::vector<Samples> permutation(const Group& group, const PermuteBitsSpec& spec, const PermutationOptions& options) {
  if (spec.element_bytes < 8) {
    throw BadInput("bench permutation needs elements of at least 8 bytes, found " + std::to_string(spec.element_bytes));
  }
  Arena arena(group);
  const SharedArray state = group.allocate(spec.element_bytes << spec.local_bits);
  const std::vector<std::span<std::byte>> arrays = {state.bytes()};
  Witnesses samples(spec, group.rank(), state.bytes());
  std::vector<Candidate> candidates;
  const auto add = [&](std::string name, Role role, std::function<void()> run, bool exact = true) {
    candidates.push_back({name, role, [&samples, name, run = std::move(run), exact](int repetitions) {
                            for (int i = 0; i < repetitions; ++i) {
                              samples.write();
                              run();
                              if (exact) samples.check(name);
                            }
                          }});
  };
  const PlanOptions plan_options{.transport = options.transport};
  Plan fused(group, permute_bits(spec, group.rank()), arrays, plan_options);
  add("onehop", Role::ours, [&] { fused.run(); });
  std::unique_ptr<Plan> slow;
  if (!options.alone) {
    slow = std::make_unique<Plan>(group, permute_bits_one_swap_at_a_time(spec, group.rank()), arrays, plan_options);
    add("onehop, one swap at a time", Role::variant, [&] { slow->run(); });
  }
  std::vector<std::unique_ptr<Plan>> rounding;
  for (const Codec codec : options.codecs) {
    PermuteBitsSpec encoded = spec;
    encoded.codec = codec;
    encoded.type = ElementType::float64;
    Plan& plan = *rounding.emplace_back(
        std::make_unique<Plan>(group, permute_bits(encoded, group.rank()), arrays, plan_options));
    add("onehop, " + std::string(to_string(codec)), Role::variant, [&plan] { plan.run(); }, false);
  }
  std::unique_ptr<PermutationPeer> peer;
  if (options.peers) peer = mpi_swap_peer(group, state.bytes(), spec, options.pairs);
  if (peer) add("Sendrecv through a full buffer, one swap at a time", Role::peer, [&] { peer->run(); });
  if (!options.alone && arena.one_host()) candidates.push_back(least_work(arena, state.bytes(), spec, options));
  auto measured = run_rounds(arena, candidates, options.effort);
  group.barrier();  // no rank may free its state while others use it
  return measured;
}

}  // namespace onehop::bench
