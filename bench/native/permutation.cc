// `onehop bench permutation`: swaps rank bits with local bits in the index of a distributed state.
#include "measure/permutation.h"

#include <cstring>
#include <memory>
#include <string>

#include "bench/native/benchmarks.h"

namespace onehop::bench {
namespace {

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
  PermutationRounds rounds(group, spec, options.transport);
  rounds.add("onehop, one swap at a time", Role::variant, permute_bits_one_swap_at_a_time(spec, group.rank()));
  for (const Codec codec : options.codecs) {
    PermuteBitsSpec encoded = spec;
    encoded.codec = codec;
    encoded.type = ElementType::float64;
    rounds.add("onehop, " + std::string(to_string(codec)), Role::variant, permute_bits(encoded, group.rank()), false);
  }
  std::unique_ptr<PermutationPeer> peer;
  if (options.peers) peer = mpi_swap_peer(group, rounds.state(), spec, options.pairs);
  if (peer) {
    rounds.add("Sendrecv through a full buffer, one swap at a time", Role::peer, [&peer] { peer->run(); });
  }
  if (rounds.arena().one_host()) rounds.add(least_work(rounds.arena(), rounds.state(), spec, options));
  return rounds.run(options.effort);
}

}  // namespace onehop::bench
