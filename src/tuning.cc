#include "onehop/tuning.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "onehop/error.h"
#include "wait_limits.h"

namespace onehop {
namespace {

constexpr std::array<std::string_view, 4> store_names = {"plain", "prefetch", "demote", "nontemporal"};
constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();

bool is_amd() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

bool is_intel() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

std::optional<Tuning> read_file() {
  const std::string path = tuning_file();
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  try {
    Tuning found = Tuning::from_json(text.str());
    found.origin = path;
    return found;
  } catch (const Error& error) {
    std::fprintf(stderr, "onehop: %s is not used (%s); run `onehop tune` to make it anew, or delete it\n", path.c_str(),
                 error.what());
    return std::nullopt;
  }
}

Tuning& current() {
  static Tuning tuning = [] {
    Tuning found = read_file().value_or(built_in_tuning());
    detail::wait_limits = {found.spins, found.spins_crowded, found.yields};
    return found;
  }();
  return tuning;
}

}  // namespace

std::string_view to_string(StoreKind kind) { return store_names.at(static_cast<std::size_t>(kind)); }

StoreKind store_kind_from_string(std::string_view name) {
  const auto found = std::find(store_names.begin(), store_names.end(), name);
  if (found == store_names.end()) {
    throw BadInput("unknown store kind \"" + std::string(name) + "\"; known: plain, prefetch, demote, nontemporal");
  }
  return static_cast<StoreKind>(found - store_names.begin());
}

const SizeRule& Tuning::rule(std::int64_t bytes) const {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const SizeRule& rule) { return bytes <= rule.up_to; });
  return found == rules.end() ? rules.back() : *found;
}

std::string Tuning::to_json() const {
  nlohmann::ordered_json json;
  json["onehop_tuning"] = 1;
  json["spins"] = spins;
  json["spins_crowded"] = spins_crowded;
  json["yields"] = yields;
  json["slot_bytes"] = slot_bytes;
  json["small_bytes"] = small_bytes;
  json["small_slots"] = small_slots;
  json["rules"] = nlohmann::ordered_json::array();
  for (const SizeRule& rule : rules) {
    nlohmann::ordered_json entry;
    entry["up_to"] = rule.up_to == no_end ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(rule.up_to);
    entry["chunk_bytes"] = rule.chunk_bytes;
    entry["stores"] = to_string(rule.stores);
    json["rules"].push_back(entry);
  }
  return json.dump(2);
}

Tuning Tuning::from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("onehop_tuning") != 1) throw BadInput("it is of another version");
    Tuning tuning;
    tuning.spins = json.at("spins");
    tuning.spins_crowded = json.at("spins_crowded");
    tuning.yields = json.at("yields");
    tuning.slot_bytes = json.at("slot_bytes");
    tuning.small_bytes = json.at("small_bytes");
    tuning.small_slots = json.at("small_slots");
    for (const auto& entry : json.at("rules")) {
      SizeRule rule;
      rule.up_to = entry.at("up_to").is_null() ? no_end : entry.at("up_to").get<std::int64_t>();
      rule.chunk_bytes = entry.at("chunk_bytes");
      rule.stores = store_kind_from_string(entry.at("stores").get<std::string>());
      if (rule.chunk_bytes < 64) throw BadInput("chunk_bytes must be at least 64");
      if (!tuning.rules.empty() && rule.up_to <= tuning.rules.back().up_to) throw BadInput("rules must ascend");
      tuning.rules.push_back(rule);
    }
    if (tuning.rules.empty() || tuning.small_slots < 1 || tuning.slot_bytes < 4096 || tuning.spins < 0 ||
        tuning.spins_crowded < 0 || tuning.yields < 0) {
      throw BadInput("a value is out of range");
    }
    return tuning;
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(error.what());
  }
}

// docs/performance.md has the measurements behind these.
Tuning built_in_tuning() {
  Tuning tuning;
  constexpr std::int64_t kib = 1 << 10;
  if (is_amd()) {
    tuning.rules = {{2 * kib, 2 * kib, StoreKind::plain},
                    {4 * kib, 1 * kib, StoreKind::plain},
                    {64 * kib, 16 * kib, StoreKind::nontemporal},
                    {no_end, 64 * kib, StoreKind::nontemporal}};
  } else if (is_intel()) {
    tuning.rules = {{1 * kib, 1 * kib, StoreKind::demote},
                    {16 * kib, 1 * kib, StoreKind::prefetch},
                    {64 * kib, 4 * kib, StoreKind::prefetch},
                    {2048 * kib, 16 * kib, StoreKind::plain},
                    {no_end, 256 * kib, StoreKind::plain}};
  } else {
    tuning.rules = {{4 * kib, 4 * kib, StoreKind::plain}, {no_end, 16 * kib, StoreKind::plain}};
  }
  return tuning;
}

std::string tuning_file() {
  const auto environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string file = environment("ONEHOP_TUNING"); !file.empty()) return file;
  std::string cache = environment("XDG_CACHE_HOME");
  if (cache.empty()) cache = environment("HOME") + "/.cache";
  return cache + "/onehop/tuning.json";
}

const Tuning& tuning() { return current(); }

void set_tuning(Tuning tuning) {
  current() = std::move(tuning);
  detail::wait_limits = {current().spins, current().spins_crowded, current().yields};
}

}  // namespace onehop
