// Table of the algorithm of an all-reduce by array length, and of the length above which a codec is faster than raw.
// `onehop tune` measures it once and saves it in tuning_file(); defaults are built in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "onehop/codec.h"
#include "onehop/group.h"
#include "onehop/patterns.h"

namespace onehop::collectives {

// The rule for arrays of up to `up_to` bytes.
struct ReduceRule {
  std::int64_t up_to = std::numeric_limits<std::int64_t>::max();
  ReduceAlgorithm algorithm = ReduceAlgorithm::two_shot;
  std::int64_t chunk_bytes = 0;  // size of the pieces in which the array travels, before encoding

  friend bool operator==(const ReduceRule&, const ReduceRule&) = default;
};

// Where the arrays are: in memory that all ranks of a group share, in that of several hosts, or on the cards of a host.
enum class ReducePlace : std::uint8_t { network, shared_memory, cards };

struct ReduceTable {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  ReducePlace place = ReducePlace::shared_memory;
  int ranks = 0;  // for groups of up to this many ranks; 0: of any size
  // In ascending order. The last rule has no upper limit.
  std::vector<ReduceRule> raw;
  std::vector<ReduceRule> encoded;
  // Indexed by codec: the size in bytes from which reducing a float32 array with this codec is faster than raw;
  // `never` where the codec does not take so many ranks.
  std::vector<std::int64_t> compress_above{};

  [[nodiscard]] bool in_memory() const noexcept { return place == ReducePlace::shared_memory; }
  [[nodiscard]] const ReduceRule& rule(std::int64_t bytes, bool is_encoded) const;
  // compress_above of a codec, if it is ever faster.
  [[nodiscard]] std::optional<std::int64_t> pays_from(Codec codec) const;

  friend bool operator==(const ReduceTable&, const ReduceTable&) = default;
};

// The first table that fits applies. The last one of each kind fits any number of ranks.
using ReduceTables = std::vector<ReduceTable>;
[[nodiscard]] const ReduceTable& table_for(const ReduceTables& tables, ReducePlace place, int ranks);
// Rank 0's table, because the ranks' files may differ and all ranks must make the same choice. Collective.
[[nodiscard]] ReduceTable agreed_table(const Group& group, ReducePlace place);

[[nodiscard]] ReduceTables built_in_reduce_tables();
// The tables in use: those of tuning_file(), else the defaults. A damaged file is reported once on stderr and ignored.
[[nodiscard]] const ReduceTables& reduce_tables();

// The JSON list under "allreduce" in the tuning file. reduce_tables_from_json throws BadInput, also for a text of more
// bytes than a tuning file may have.
inline constexpr std::size_t longest_reduce_tables = std::size_t{64} << 10U;
[[nodiscard]] std::string to_json(const ReduceTables& tables);
[[nodiscard]] ReduceTables reduce_tables_from_json(const std::string& text);

}  // namespace onehop::collectives
