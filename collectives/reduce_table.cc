#include "onehop/collectives/reduce_table.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "onehop/codec_table.h"
#include "onehop/error.h"
#include "onehop/tuning.h"

namespace onehop::collectives {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t max_bytes = std::int64_t{1} << 40U;
constexpr std::array<std::string_view, 3> places = {"network", "shared_memory", "cards"};

Json length(std::int64_t value) { return value == no_end ? Json(nullptr) : Json(value); }

std::int64_t integer(const Json& json) {
  const bool fits = json.is_number_integer() && (!json.is_number_unsigned() || json.get<std::uint64_t>() <= no_end);
  if (!fits) throw BadInput("expected an integer below 2^63, found " + std::string(json.type_name()));
  return json.get<std::int64_t>();
}

std::int64_t length(const Json& json) { return json.is_null() ? no_end : integer(json); }

Json rules_json(const std::vector<ReduceRule>& rules) {
  Json list = Json::array();
  for (const ReduceRule& rule : rules) {
    list.push_back(
        {{"up_to", length(rule.up_to)}, {"algorithm", to_string(rule.algorithm)}, {"chunk_bytes", rule.chunk_bytes}});
  }
  return list;
}

ReduceAlgorithm algorithm_named(const std::string& name) {
  for (const ReduceAlgorithm one : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
    if (name == to_string(one)) return one;
  }
  throw BadInput("expected the algorithm one_shot or two_shot, found '" + name + "'");
}

std::vector<ReduceRule> rules_from(const Json& list) {
  std::vector<ReduceRule> rules;
  for (const Json& entry : list) {
    const ReduceRule rule{length(entry.at("up_to")), algorithm_named(entry.at("algorithm").get<std::string>()),
                          integer(entry.at("chunk_bytes"))};
    if (rule.chunk_bytes < 256 || rule.chunk_bytes > max_bytes) {
      throw BadInput("expected chunk_bytes from 256 to " + std::to_string(max_bytes) + ", found " +
                     std::to_string(rule.chunk_bytes));
    }
    if (!rules.empty() && rule.up_to <= rules.back().up_to) throw BadInput("expected rules with ascending up_to");
    rules.push_back(rule);
  }
  if (rules.empty() || rules.back().up_to != no_end) throw BadInput("expected a last rule with an up_to of null");
  return rules;
}

ReduceTable table_from(const Json& json) {
  ReduceTable table;
  const auto where = json.at("transport").get<std::string>();
  const auto* const place = std::find(places.begin(), places.end(), where);
  if (place == places.end())
    throw BadInput("expected the transport shared_memory, network or cards, found '" + where + "'");
  table.place = static_cast<ReducePlace>(place - places.begin());
  const std::int64_t ranks = json.at("ranks").is_null() ? 0 : integer(json.at("ranks"));
  if (ranks < 0 || ranks > std::numeric_limits<int>::max()) throw BadInput("expected ranks from 0 to 2^31 - 1");
  table.ranks = static_cast<int>(ranks);
  table.raw = rules_from(json.at("raw"));
  table.encoded = rules_from(json.at("encoded"));
  const Json& sizes = json.at("compress_above");
  table.compress_above = {0};
  for (std::size_t codec = 1; codec < codecs().size(); ++codec) {
    const std::string name(codecs()[codec].name);
    // A table of an older version lacks the codecs from q3 on.
    const bool is_newer = codec >= static_cast<std::size_t>(Codec::q3) && !sizes.contains(name);
    const std::int64_t above = is_newer ? ReduceTable::never : length(sizes.at(name));
    if (above < 0) throw BadInput("expected compress_above of 0 or more, found " + std::to_string(above));
    table.compress_above.push_back(above);
  }
  return table;
}

bool has_last(const ReduceTables& tables, ReducePlace place) {
  return std::any_of(tables.begin(), tables.end(),
                     [&](const ReduceTable& one) { return one.place == place && one.ranks == 0; });
}

// On cards: one shot up to these lengths, by the ranks.
ReduceTables tables_of_cards() {
  constexpr std::int64_t kib = 1 << 10;
  ReduceTables tables;
  for (const auto& [ranks, up_to] : {std::pair(2, 512 * kib), std::pair(4, 128 * kib), std::pair(0, 64 * kib)}) {
    const std::vector<ReduceRule> rules{{up_to, ReduceAlgorithm::one_shot, 256 * kib},
                                        {no_end, ReduceAlgorithm::two_shot, 256 * kib}};
    std::vector<std::int64_t> above(codecs().size(), up_to);
    above.front() = 0;
    tables.push_back({ReducePlace::cards, ranks, rules, rules, above});
  }
  return tables;
}

ReduceTables tables_from(const Json& list) {
  ReduceTables tables;
  for (const Json& entry : list) {
    ReduceTable table = table_from(entry);
    const auto hides = [&](const ReduceTable& one) {
      return one.place == table.place && (one.ranks == 0 || (table.ranks != 0 && one.ranks >= table.ranks));
    };
    if (std::ranges::any_of(tables, hides)) {
      throw BadInput("expected tables of a transport with ascending ranks, null last");
    }
    tables.push_back(std::move(table));
  }
  if (!has_last(tables, ReducePlace::shared_memory) || !has_last(tables, ReducePlace::network)) {
    throw BadInput("expected a table with ranks null for shared_memory and one for network");
  }
  if (!has_last(tables, ReducePlace::cards)) std::ranges::copy(tables_of_cards(), std::back_inserter(tables));
  return tables;
}

std::optional<ReduceTables> read_file() {
  const std::optional<std::string> text = tuning_text();
  if (!text) return std::nullopt;
  const Json json = Json::parse(*text, nullptr, false);
  // tuning() has already reported a file that is not a tuning at all.
  if (!json.is_object() || !json.contains("allreduce")) return std::nullopt;
  std::string problem;
  try {
    return tables_from(json.at("allreduce"));
  } catch (const Error& error) {
    problem = error.what();
  } catch (const nlohmann::json::exception& error) {
    problem = error.what();
  }
  std::fprintf(stderr, "onehop: the all-reduce tables of %s are not used (%s): run `onehop tune` to make them anew\n",
               tuning_file().c_str(), problem.c_str());
  return std::nullopt;
}

}  // namespace

const ReduceRule& ReduceTable::rule(std::int64_t bytes, bool is_encoded) const {
  const std::vector<ReduceRule>& rules = is_encoded ? encoded : raw;
  return *std::find_if(rules.begin(), rules.end() - 1, [&](const ReduceRule& one) { return bytes <= one.up_to; });
}

std::optional<std::int64_t> ReduceTable::pays_from(Codec codec) const {
  const std::int64_t above = compress_above.at(static_cast<std::size_t>(codec));
  return above == never ? std::nullopt : std::optional(above);
}

const ReduceTable& table_for(const ReduceTables& tables, ReducePlace place, int ranks) {
  return *std::find_if(tables.begin(), tables.end(), [&](const ReduceTable& one) {
    return one.place == place && (one.ranks == 0 || ranks <= one.ranks);
  });
}

std::string to_json(const ReduceTables& tables) {
  Json list = Json::array();
  for (const ReduceTable& table : tables) {
    Json above = Json::object();
    for (std::size_t codec = 1; codec < table.compress_above.size(); ++codec)
      above[std::string(codecs()[codec].name)] = length(table.compress_above[codec]);
    list.push_back({{"transport", places[static_cast<std::size_t>(table.place)]},
                    {"ranks", table.ranks == 0 ? Json(nullptr) : Json(table.ranks)},
                    {"raw", rules_json(table.raw)},
                    {"encoded", rules_json(table.encoded)},
                    {"compress_above", above}});
  }
  return list.dump(2);
}

ReduceTables reduce_tables_from_json(const std::string& text) {
  if (text.size() > longest_reduce_tables) {
    throw BadInput("expected tables of at most " + std::to_string(longest_reduce_tables) + " bytes, found " +
                   std::to_string(text.size()));
  }
  try {
    return tables_from(Json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(error.what());
  }
}

// docs/performance/collectives.md and notes/collectives.md have the measurements behind these.
ReduceTables built_in_reduce_tables() {
  constexpr std::int64_t kib = 1 << 10;
  using enum ReduceAlgorithm;
  using Rules = std::vector<ReduceRule>;
  const auto followed = [](Rules rules, std::int64_t up_to, std::int64_t chunk) {
    rules.push_back({up_to, two_shot, chunk});
    rules.push_back({no_end, two_shot, 256 * kib});
    return rules;
  };
  const auto two_ranks = [&](const Rules& shorter) { return followed(shorter, 1024 * kib, 128 * kib); };
  const auto more_ranks = [&](const Rules& shorter) { return followed(shorter, 2048 * kib, 64 * kib); };
  const auto above = [](const auto& size) {
    std::vector<std::int64_t> sizes;
    for (const CodecInfo& codec : codecs()) sizes.push_back(sizes.empty() ? 0 : size(codec));
    return sizes;
  };
  constexpr ReducePlace shared = ReducePlace::shared_memory;
  const ReduceTable two{
      shared, 2,
      two_ranks({{4 * kib, one_shot, 4 * kib}, {8 * kib, two_shot, 8 * kib}, {16 * kib, one_shot, 16 * kib}}),
      two_ranks({{2 * kib, one_shot, 2 * kib}}), above([](const CodecInfo& codec) { return codec.faster_above[0]; })};
  const ReduceTable more{shared, 0, more_ranks({{16 * kib, one_shot, 16 * kib}}),
                         more_ranks({{8 * kib, one_shot, 8 * kib}}),
                         above([](const CodecInfo& codec) { return codec.faster_above[1]; })};
  // The transport cuts long chunks into messages that MPI sends without a handshake. Between two ranks, both algorithms
  // send the same bytes, and one-shot waits for one way less.
  const auto remote = [](std::int64_t up_to) {
    return Rules{{up_to, one_shot, 256 * kib}, {no_end, two_shot, 256 * kib}};
  };
  const auto all_above = above([](const CodecInfo&) { return 2 * kib; });
  const ReduceTable remote_pair{ReducePlace::network, 2, remote(1024 * kib), remote(64 * kib), all_above};
  const ReduceTable network{ReducePlace::network, 0, remote(16 * kib), remote(16 * kib), all_above};
  ReduceTables tables{two, more, remote_pair, network};
  std::ranges::copy(tables_of_cards(), std::back_inserter(tables));
  return tables;
}

const ReduceTables& reduce_tables() {
  static const ReduceTables tables = read_file().value_or(built_in_reduce_tables());
  return tables;
}

ReduceTable agreed_table(const Group& group, ReducePlace place) {
  const std::string mine = group.rank() == 0 ? to_json(reduce_tables()) : "";
  const Gathered all = group.allgather(std::as_bytes(std::span(mine)));
  const std::string first(reinterpret_cast<const char*>(all[0].data()), all[0].size());
  return table_for(reduce_tables_from_json(first), place, group.size());
}

}  // namespace onehop::collectives
