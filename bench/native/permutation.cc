// `onehop bench permutation`: swaps rank bits with local bits in the index of a distributed state.
#include "measure/permutation.h"

#include <cstring>
#include <memory>
#include <string>

#include "bench/native/bench.h"
#include "bench/native/mpi/peers.h"

namespace onehop::bench {
namespace {

using Pairs = std::vector<std::pair<int, int>>;  // of bits, disjoint; usually (local bit, bit of the rank)

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
std::size_t bytes_of_lines(const PermuteBitsSpec& spec, const Pairs& pairs) {
  const auto all = static_cast<std::size_t>(spec.element_bytes) << spec.local_bits;
  for (const auto& [local, unused] : pairs) {
    if (spec.element_bytes << local < 64) return all;  // every line has elements with this bit set and with it clear
  }
  return all - (all >> pairs.size());
}

// Reading and writing once each cache line that holds an element that moves.
Candidate least_work(Arena& arena, std::span<std::byte> state, const PermuteBitsSpec& spec, const Pairs& pairs,
                     const Effort& effort) {
  const std::span<std::byte> lines = state.first(bytes_of_lines(spec, pairs));
  std::vector<Candidate> floors;
  for (const std::size_t streams : {1U, 2U}) {
    floors.push_back(repeated("each line read and written once", Role::speed_of_light,
                              [lines, streams] { read_and_write(lines, streams); }));
  }
  return fastest_variant(arena, std::move(floors), effort);
}

// Swaps rank bits with local bits in the index of a distributed state of complex doubles. Elements are written before
// each run and checked after it.
std::vector<Samples> measured(const Group& group, int local_bits, const Pairs& pairs, TransportKind transport,
                              const Effort& effort, bool peers, const std::vector<Codec>& codecs) {
  const PermuteBitsSpec spec = swap_bits(local_bits, pairs, 16, group.size());
  PermutationRounds rounds(group, spec, transport);
  rounds.add("onehop, one swap at a time", Role::variant, permute_bits_one_swap_at_a_time(spec, group.rank()));
  for (const Codec codec : codecs) {
    PermuteBitsSpec encoded = spec;
    encoded.codec = codec;
    encoded.type = ElementType::float64;
    rounds.add("onehop, " + std::string(to_string(codec)), Role::variant, permute_bits(encoded, group.rank()), false);
  }
  if (const auto swaps = peers ? mpi_swaps(group, rounds.state(), spec, pairs) : nullptr) {
    rounds.add("Sendrecv through a full buffer, one swap at a time", Role::peer, swaps);
  }
  if (rounds.arena().one_host()) rounds.add(least_work(rounds.arena(), rounds.state(), spec, pairs, effort));
  return rounds.run(effort);
}

}  // namespace

void bind_permutation(nb::module_& module) {
  module.def(
      "permutation",
      [](const Group& group, int local_bits, const Pairs& pairs, const std::string& transport, const Effort& effort,
         bool peers, const std::vector<std::string>& names) {
        std::vector<Codec> codecs;
        for (const std::string& name : names) codecs.push_back(codec_from_string(name));
        const TransportKind kind = transport_from_string(transport);
        return samples::measure([&] { return measured(group, local_bits, pairs, kind, effort, peers, codecs); });
      },
      "group"_a, "local_bits"_a, "pairs"_a, "transport"_a, "effort"_a, "peers"_a, "codecs"_a,
      "Measure a permutation that swaps pairs of index bits of a distributed state of complex doubles.");
}

}  // namespace onehop::bench
