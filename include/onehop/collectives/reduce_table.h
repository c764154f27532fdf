// How an all-reduce goes about a length, and from which length on a codec takes less time than raw: measured once by `onehop tune`,
// which keeps it beside the rest of its answer (tuning_file()), with sound values built in.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "onehop/codec.h"
#include "onehop/patterns.h"

namespace onehop::collectives {

// For arrays of up to `up_to` bytes.
struct ReduceRule {
  std::int64_t up_to = std::numeric_limits<std::int64_t>::max();
  ReduceAlgorithm algorithm = ReduceAlgorithm::two_shot;
  std::int64_t chunk_bytes = 0;  // of the array, of the pieces in which it travels

  friend bool operator==(const ReduceRule&, const ReduceRule&) = default;
};

struct ReduceTable {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  bool in_memory = true;  // for ranks that all share memory; false: for others
  int ranks = 0;          // for groups of up to so many; 0: for any
  // Ascending; the last one has no end.
  std::vector<ReduceRule> raw;
  std::vector<ReduceRule> encoded;
  // By number of codec: arrays of float32 with so many bytes or more are reduced in less time with it than raw.
  std::array<std::int64_t, 7> compress_above{};

  [[nodiscard]] const ReduceRule& rule(std::int64_t bytes, bool is_encoded) const;

  friend bool operator==(const ReduceTable&, const ReduceTable&) = default;
};

// Of several tables the first that fits holds; the last of each kind is for any number of ranks.
using ReduceTables = std::vector<ReduceTable>;
[[nodiscard]] const ReduceTable& table_for(const ReduceTables& tables, bool in_memory, int ranks);

[[nodiscard]] ReduceTables built_in_reduce_tables();
// Those in force: of tuning_file(), else built in. A damaged file is reported once on stderr and not used.
[[nodiscard]] const ReduceTables& reduce_tables();

// A list, as it stands under "allreduce" in the tuning file. from_json throws BadInput.
[[nodiscard]] std::string to_json(const ReduceTables& tables);
[[nodiscard]] ReduceTables reduce_tables_from_json(const std::string& text);

}  // namespace onehop::collectives
