#include "onehop/machine/simulate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "machine/simulate/engine.h"
#include "machine/simulate/network.h"
#include "machine/simulate/round_flows.h"
#include "onehop/error.h"
#include "src/base/json_text.h"
#include "src/base/text.h"

namespace onehop {
namespace {

[[noreturn]] void complain(const std::string& what, const std::string& expected, const std::string& found) {
  throw BadInput(what + ": expected " + expected + ", found " + found);
}

void check_places(const Traffic& traffic, const Machine& machine, const SimulateOptions& options) {
  const std::int64_t processors = machine.processors();
  if (traffic.ranks < 1) complain("simulate", "1 rank or more", std::to_string(traffic.ranks));
  if (options.places.empty()) return;
  if (std::ssize(options.places) != traffic.ranks) {
    complain("the map of ranks", "one place for each of " + base::counted(traffic.ranks, "rank"),
             std::to_string(options.places.size()));
  }
  std::int64_t most = 0;
  for (const std::int64_t place : options.places) {
    if (place < 0 || place >= processors) {
      complain("the map of ranks",
               "places from 0 to " + std::to_string(processors - 1) + " of the machine " + machine.name,
               std::to_string(place));
    }
    most = std::max(most, place + 1);
  }
  std::vector<int> rank_at(static_cast<std::size_t>(most), -1);
  for (int rank = 0; rank < traffic.ranks; ++rank) {
    int& before = rank_at[static_cast<std::size_t>(options.places[static_cast<std::size_t>(rank)])];
    if (before >= 0) {
      complain("the map of ranks", "a place of its own for every rank",
               "ranks " + std::to_string(before) + " and " + std::to_string(rank) + " at place " +
                   std::to_string(options.places[static_cast<std::size_t>(rank)]));
    }
    before = rank;
  }
}

void check_options(const Traffic& traffic, const SimulateOptions& options) {
  if (options.compute.size() > 1 && options.compute.size() != traffic.rounds.size()) {
    complain("compute", "one number, or one for each of " + base::counted(traffic.rounds.size(), "round"),
             std::to_string(options.compute.size()));
  }
  for (const double seconds : options.compute) {
    if (!(seconds >= 0) || !std::isfinite(seconds)) {
      complain("compute", "finite numbers of seconds of at least 0", std::to_string(seconds));
    }
  }
  if (options.chunk_bytes < 0) complain("chunk_bytes", "0 or more", std::to_string(options.chunk_bytes));
  if (options.slot_bytes < 0) complain("slot_bytes", "0 or more", std::to_string(options.slot_bytes));
  if (options.slots < 1) complain("slots", "1 or more", std::to_string(options.slots));
  if (!(options.accuracy >= 0) || options.accuracy > 0.5) {
    complain("accuracy", "a number from 0 to 0.5", std::to_string(options.accuracy));
  }
}

}  // namespace

Simulation simulate(const Traffic& traffic, const Machine& machine, const SimulateOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  machine.check();
  check_places(traffic, machine, options);
  if (static_cast<double>(traffic.rank_bytes) > machine.memory.value) {
    complain(traffic.name,
             "arrays of at most " + base::counted(static_cast<std::int64_t>(machine.memory.value), "byte") +
                 " on a rank, the memory of a processor of the machine " + machine.name,
             base::counted(traffic.rank_bytes, "byte") + "; use more ranks");
  }
  const Machine job = options.places.empty() ? machine.job(traffic.ranks) : machine;
  check_options(traffic, options);
  traffic.check();
  Simulation result;
  result.schedule = traffic.name;
  result.machine = machine.name;
  result.ranks = traffic.ranks;
  const detail::Network network(job);
  const detail::Symmetry symmetry = detail::symmetry_of(traffic, job, !options.places.empty());
  const bool listed = std::ranges::all_of(
      traffic.rounds, [](const TrafficRound& round) { return round.kind == TrafficRound::Kind::list; });
  result.by_symmetry = symmetry.any() && !traffic.rounds.empty();
  const Traffic list = symmetry.any() || listed ? Traffic{} : traffic.listed();
  const Traffic& used = symmetry.any() || listed ? traffic : list;
  const detail::Classes classes(network, symmetry, options.places, traffic.ranks);
  detail::Engine(used, network, classes, options).run(result);
  result.seconds_to_simulate = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

Simulation simulate(const Schedule& schedule, const Machine& machine, const SimulateOptions& options) {
  return simulate(traffic_of(schedule), machine, options);
}

namespace {

using detail::Json;

Json to_json_value(const LinkLoad& link, double seconds) {
  return {{"name", link.name},         {"level", link.level},
          {"bytes", link.bytes},       {"bandwidth", link.bandwidth},
          {"seconds", link.seconds()}, {"busy", seconds > 0 ? link.seconds() / seconds : 0.0},
          {"alike", link.alike}};
}

Json to_json_value(const RankSpan& span) {
  return {{"begin", span.begin}, {"posted", span.posted}, {"computed", span.computed}, {"end", span.end}};
}

}  // namespace

std::string Simulation::to_json(int indent, int max_links, int max_timelines) const {
  Json json = {{"schedule", schedule}, {"machine", machine}, {"ranks", ranks}, {"seconds", seconds}};
  json["rounds"] = Json::array();
  for (const SimulatedRound& round : rounds) {
    json["rounds"].push_back({{"seconds", round.seconds},
                              {"messages", round.messages},
                              {"bytes", round.bytes},
                              {"schedule_rounds", round.schedule_rounds}});
  }
  json["busiest_link"] = links.empty() ? Json() : to_json_value(links.front(), seconds);
  json["bytes_by_level"] = Json::object();
  for (const LevelBytes& one : bytes_by_level) json["bytes_by_level"][one.level] = one.bytes;
  json["links"] = Json::array();
  const auto few = [](int most, std::size_t size) {
    return std::min(static_cast<std::size_t>(std::max(0, most)), size);
  };
  for (std::size_t i = 0; i < few(max_links, links.size()); ++i) {
    json["links"].push_back(to_json_value(links[i], seconds));
  }
  json["timelines"] = Json::array();
  for (std::size_t i = 0; i < few(max_timelines, timelines.size()); ++i) {
    Json spans = Json::array();
    for (const RankSpan& span : timelines[i]) spans.push_back(to_json_value(span));
    json["timelines"].push_back({{"rank", timeline_ranks[i]}, {"rounds", std::move(spans)}});
  }
  json["by_symmetry"] = by_symmetry;
  json["seconds_to_simulate"] = seconds_to_simulate;
  return detail::json_text(json, indent);
}

}  // namespace onehop
