#include "onehop/schedule.h"

#include <algorithm>
#include <unordered_map>

#include "onehop/error.h"
#include "src/base/names.h"
#include "src/base/text.h"
#include "src/schedule/wire_size.h"

namespace onehop {

namespace {

constexpr detail::NamedValue<Combine> combines[] = {{Combine::replace, "replace"},
                                                    {Combine::add, "add"},
                                                    {Combine::min, "min"},
                                                    {Combine::max, "max"},
                                                    {Combine::prod, "prod"}};

bool takes_part(const Transfer& transfer, int rank) { return transfer.from.rank == rank || transfer.to.rank == rank; }

std::string array_name(const Schedule& schedule, int array) {
  if (array < 0 || static_cast<std::size_t>(array) >= schedule.arrays.size()) {
    return "array number " + std::to_string(array) + ", which does not exist";
  }
  const std::string& name = schedule.arrays[static_cast<std::size_t>(array)].name;
  return "array " + (name.empty() ? "number " + std::to_string(array) : name);
}

void check_parts(std::span<const Schedule> parts) {
  if (parts.empty() || parts.size() != static_cast<std::size_t>(std::max(parts.front().ranks, 0))) {
    throw BadInput("merge: expected one part for every rank of the schedule (" +
                   std::to_string(parts.empty() ? 1 : parts.front().ranks) + "), found " +
                   std::to_string(parts.size()));
  }
  const Schedule& first = parts.front();
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const Schedule& part = parts[rank];
    const char* difference = part.name != first.name                     ? "name"
                             : part.ranks != first.ranks                 ? "number of ranks"
                             : part.arrays != first.arrays               ? "arrays"
                             : part.rounds.size() != first.rounds.size() ? "number of rounds"
                                                                         : nullptr;
    if (difference != nullptr) {
      throw Mismatch("merge: the parts of rank 0 and rank " + std::to_string(rank) + " differ in their " + difference +
                     ": build both with the same parameters");
    }
    for (std::size_t round = 0; round < part.rounds.size(); ++round) {
      if (part.rounds[round].permutation != first.rounds[round].permutation) {
        throw Mismatch("merge: the parts of rank 0 and rank " + std::to_string(rank) +
                       " differ in the permutation of round " + std::to_string(round) +
                       ": build both with the same parameters");
      }
      const auto& transfers = part.rounds[round].transfers;
      for (std::size_t t = 0; t < transfers.size(); ++t) {
        if (takes_part(transfers[t], static_cast<int>(rank))) continue;
        throw BadInput("merge: expected only transfers from or to rank " + std::to_string(rank) +
                       " in its part, found " + describe(part, static_cast<int>(round), static_cast<int>(t)));
      }
    }
  }
}

// Merges one round of all parts. Matches each transfer of a sender with the same transfer in the receiver's part.
class RoundMerge {
 public:
  RoundMerge(std::span<const Schedule> parts, int round) : parts_(parts), round_(round) {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const auto& transfers = transfers_of(static_cast<int>(rank));
      for (std::size_t t = 0; t < transfers.size(); ++t) {
        if (transfers[t].from.rank == static_cast<int>(rank)) continue;
        incoming_[key(transfers[t])].indices.push_back(static_cast<int>(t));
      }
    }
  }

  [[nodiscard]] Round merged() {
    Round whole;
    whole.permutation = parts_.front().rounds[static_cast<std::size_t>(round_)].permutation;
    for (int rank = 0; rank < static_cast<int>(parts_.size()); ++rank) {
      const auto& transfers = transfers_of(rank);
      for (std::size_t t = 0; t < transfers.size(); ++t) {
        if (transfers[t].from.rank != rank) continue;
        if (transfers[t].to.rank != rank) take_from_receiver(transfers[t], static_cast<int>(t));
        whole.transfers.push_back(transfers[t]);
      }
    }
    for (const auto& [ends, incoming] : incoming_) {
      if (incoming.taken == incoming.indices.size()) continue;
      const int from = static_cast<int>(ends >> 32U);
      const int to = static_cast<int>(ends & 0xffffffffU);
      throw Mismatch("merge: rank " + std::to_string(to) + " expects a transfer that the part of rank " +
                     std::to_string(from) + " does not have: " + name(to, incoming.indices[incoming.taken]));
    }
    return whole;
  }

 private:
  struct Incoming {
    std::vector<int> indices;  // in the receiver's part
    std::size_t taken = 0;
  };

  static std::uint64_t key(const Transfer& transfer) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(transfer.from.rank)) << 32U) |
           static_cast<std::uint32_t>(transfer.to.rank);
  }

  [[nodiscard]] const std::vector<Transfer>& transfers_of(int rank) const {
    return parts_[static_cast<std::size_t>(rank)].rounds[static_cast<std::size_t>(round_)].transfers;
  }

  [[nodiscard]] std::string name(int rank, int transfer) const {
    return "in the part of rank " + std::to_string(rank) + " " +
           describe(parts_[static_cast<std::size_t>(rank)], round_, transfer);
  }

  void take_from_receiver(const Transfer& transfer, int index) {
    Incoming& incoming = incoming_[key(transfer)];
    const std::string sender = std::to_string(transfer.from.rank);
    const std::string receiver = std::to_string(transfer.to.rank);
    if (incoming.taken == incoming.indices.size()) {
      throw Mismatch("merge: rank " + sender + " sends a transfer that the part of rank " + receiver +
                     " does not have: " + name(transfer.from.rank, index));
    }
    const int other = incoming.indices[incoming.taken++];
    if (transfers_of(transfer.to.rank)[static_cast<std::size_t>(other)] != transfer) {
      throw Mismatch("merge: rank " + sender + " and rank " + receiver + " differ in a transfer: " +
                     name(transfer.from.rank, index) + "; " + name(transfer.to.rank, other));
    }
  }

  std::span<const Schedule> parts_;
  int round_;
  std::unordered_map<std::uint64_t, Incoming> incoming_;  // by sender and receiver
};

}  // namespace

std::string_view to_string(Combine combine) { return detail::name_of(combine, combines); }
Combine combine_from_string(std::string_view name) { return detail::value_of(name, combines, "a way to combine"); }

Schedule Schedule::part(int rank) const {
  if (rank < 0 || rank >= ranks) {
    throw BadInput("part: expected a rank from 0 to " + std::to_string(ranks - 1) + ", found " + std::to_string(rank));
  }
  Schedule part{name, ranks, arrays, std::vector<Round>(rounds.size()), {}};
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    part.rounds[round].permutation = rounds[round].permutation;
    std::ranges::copy_if(rounds[round].transfers, std::back_inserter(part.rounds[round].transfers),
                         [&](const Transfer& transfer) { return takes_part(transfer, rank); });
  }
  std::ranges::copy_if(must_cover, std::back_inserter(part.must_cover),
                       [&](const Place& place) { return place.rank == rank; });
  return part;
}

std::int64_t Schedule::bytes(const Transfer& transfer) const {
  const int array = transfer.from.array;
  if (array < 0 || static_cast<std::size_t>(array) >= arrays.size()) {
    throw BadInput("schedule: expected an array from 0 to " + std::to_string(static_cast<int>(arrays.size()) - 1) +
                   ", found " + std::to_string(array));
  }
  return detail::bytes_on_wire(arrays[static_cast<std::size_t>(array)], detail::wire_codec(transfer),
                               transfer.from.slice.elements());
}

Schedule merge(std::span<const Schedule> parts) {
  check_parts(parts);
  const Schedule& first = parts.front();
  Schedule whole{first.name, first.ranks, first.arrays, {}, {}};
  for (std::size_t round = 0; round < first.rounds.size(); ++round) {
    whole.rounds.push_back(RoundMerge(parts, static_cast<int>(round)).merged());
  }
  for (const Schedule& part : parts) {
    whole.must_cover.insert(whole.must_cover.end(), part.must_cover.begin(), part.must_cover.end());
  }
  return whole;
}

std::string describe(const Schedule& schedule, int round, int transfer) {
  const Transfer& t =
      schedule.rounds.at(static_cast<std::size_t>(round)).transfers.at(static_cast<std::size_t>(transfer));
  return "round " + std::to_string(round) + ", transfer " + std::to_string(transfer) + " (rank " +
         std::to_string(t.from.rank) + " " + array_name(schedule, t.from.array) + " -> rank " +
         std::to_string(t.to.rank) + " " + array_name(schedule, t.to.array) + ", " +
         base::counted(t.from.slice.elements(), "element") + ")";
}

}  // namespace onehop
