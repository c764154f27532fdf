// Schedules as JSON. docs/reference/schedule.md describes the format; `format_version` counts its changes.
#include <algorithm>
#include <limits>

#include "onehop/error.h"
#include "onehop/schedule.h"
#include "src/base/json_node.h"
#include "src/base/json_text.h"
#include "src/base/memory_left.h"
#include "src/base/text.h"

namespace onehop {

namespace {

using detail::Json;
using detail::Node;

constexpr int format_version = 1;

Json to_json_value(const Slice& slice) {
  if (slice.is_list()) return {{"indices", slice.indices()}};
  if (slice.elements() == 0) return {{"offset", 0}, {"extents", {0}}, {"strides", {1}}};
  return {{"offset", slice.offset()}, {"extents", slice.extents()}, {"strides", slice.strides()}};
}

Json to_json_value(const Place& place) {
  return {{"rank", place.rank}, {"array", place.array}, {"slice", to_json_value(place.slice)}};
}

Json to_json_value(const Transfer& transfer) {
  return {{"from", to_json_value(transfer.from)},
          {"to", to_json_value(transfer.to)},
          {"combine", to_string(transfer.combine)},
          {"codec", to_string(transfer.codec)}};
}

Json to_json_value(const ArraySpec& array) {
  Json json = {{"name", array.name}, {"element_bytes", array.element_bytes}, {"type", to_string(array.type)}};
  if (array.elements.size() == 1) {
    json["elements"] = array.elements.front();
  } else {
    json["elements"] = array.elements;
  }
  return json;
}

Json to_json_value(const BitPermutation& permutation) {
  return {{"array", permutation.array}, {"local_bits", permutation.local_bits}, {"to", permutation.to}};
}

using detail::any_integer;
using detail::largest_integer;

Slice slice_from(const Node& node) {
  if (node.has("indices")) {
    node.expect_keys({"indices"});
    auto indices = node.at("indices").integers(0);
    return node.read([&] { return Slice::list(std::move(indices)); });
  }
  node.expect_keys({"offset", "extents", "strides"});
  const auto offset = node.at("offset").integer(any_integer, largest_integer);
  const auto extents = node.at("extents").integers(0);
  const auto strides = node.at("strides").integers(any_integer);
  return node.read([&] { return Slice::box(offset, extents, strides); });
}

// Accepts ranks and arrays that do not exist: `verify` reports them and can name the transfer.
Place place_from(const Node& node) {
  node.expect_keys({"rank", "array", "slice"});
  constexpr int smallest = std::numeric_limits<int>::min();
  return {node.at("rank").small_integer(smallest), node.at("array").small_integer(smallest),
          slice_from(node.at("slice"))};
}

template <class Value>
Value named(const Node& node, const char* key, Value otherwise, Value (*from_string)(std::string_view)) {
  if (!node.has(key)) return otherwise;
  const Node name = node.at(key);
  const std::string text = name.text();
  return name.read([&] { return from_string(text); });
}

Transfer transfer_from(const Node& node) {
  node.expect_keys({"from", "to"}, {"combine", "codec"});
  return {place_from(node.at("from")), place_from(node.at("to")),
          named(node, "combine", Combine::replace, combine_from_string),
          named(node, "codec", Codec::raw, codec_from_string)};
}

// `verify` also checks that this is a permutation and fits the schedule.
BitPermutation permutation_from(const Node& node) {
  node.expect_keys({"array", "local_bits", "to"});
  return {node.at("array").small_integer(0), node.at("local_bits").small_integer(0),
          node.at("to").list([](const Node& bit) { return bit.small_integer(0); })};
}

Round round_from(const Node& node) {
  node.expect_keys({"transfers"}, {"permutation"});
  Round round;
  if (node.has("permutation")) round.permutation = permutation_from(node.at("permutation"));
  round.transfers = node.at("transfers").list(transfer_from);
  return round;
}

ArraySpec array_from(const Node& node, int ranks) {
  node.expect_keys({"name", "element_bytes", "elements"}, {"type"});
  ArraySpec array{node.at("name").text(),
                  node.at("element_bytes").integer(1, largest_integer),
                  named(node, "type", ElementType::bytes, element_type_from_string),
                  {}};
  const Node elements = node.at("elements");
  if (!elements.is_array()) {
    array.elements = {elements.integer(0, largest_integer)};
    return array;
  }
  array.elements = elements.integers(0);
  if (array.elements.size() != 1 && array.elements.size() != static_cast<std::size_t>(ranks)) {
    elements.complain("one number, or one for each of the " + base::counted(ranks, "rank"),
                      std::to_string(array.elements.size()));
  }
  return array;
}

// A tree of values takes several times the memory of the schedule: about 1000 bytes a place, and 32 a number.
void check_json_fits(const Schedule& schedule) {
  double bytes = 0;
  const auto add = [&](const Place& place) { bytes += 1000 + 32 * static_cast<double>(place.slice.indices().size()); };
  for (const Round& round : schedule.rounds) {
    for (const Transfer& transfer : round.transfers) {
      add(transfer.from);
      add(transfer.to);
    }
  }
  std::ranges::for_each(schedule.must_cover, add);
  for (const ArraySpec& array : schedule.arrays) bytes += 32 * static_cast<double>(array.elements.size());
  detail::check_room("the schedule as JSON", bytes, "bytes of values", 1);
}

}  // namespace

std::string Schedule::to_json(int indent) const {
  check_json_fits(*this);
  Json json;
  json["onehop_schedule"] = format_version;
  json["name"] = name;
  json["ranks"] = ranks;
  json["arrays"] = Json::array();
  for (const ArraySpec& array : arrays) json["arrays"].push_back(to_json_value(array));
  json["rounds"] = Json::array();
  for (const Round& round : rounds) {
    Json transfers = Json::array();
    for (const Transfer& transfer : round.transfers) transfers.push_back(to_json_value(transfer));
    json["rounds"].push_back({{"transfers", std::move(transfers)}});
    if (round.permutation) json["rounds"].back()["permutation"] = to_json_value(*round.permutation);
  }
  json["must_cover"] = Json::array();
  for (const Place& place : must_cover) json["must_cover"].push_back(to_json_value(place));
  return detail::json_text(json, indent);
}

Schedule Schedule::from_json(std::string_view text) {
  const std::string name = "the schedule";
  const Node root(text, name);
  root.expect_keys({"onehop_schedule", "ranks", "arrays", "rounds"}, {"name", "must_cover"});
  const Node version = root.at("onehop_schedule");
  if (version.integer(any_integer, largest_integer) != format_version) {
    version.complain("the format version " + std::to_string(format_version) + ", which this onehop reads");
  }
  Schedule schedule;
  if (root.has("name")) schedule.name = root.at("name").text();
  schedule.ranks = static_cast<int>(root.at("ranks").integer(1, max_ranks));
  schedule.arrays = root.at("arrays").list([&](const Node& node) { return array_from(node, schedule.ranks); });
  schedule.rounds = root.at("rounds").list(round_from);
  if (root.has("must_cover")) schedule.must_cover = root.at("must_cover").list(place_from);
  return schedule;
}

}  // namespace onehop
