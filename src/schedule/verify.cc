// Checks shapes per transfer and everything else per rank: only transfers to a rank write its memory and only transfers
// from it read it, so no rule needs two ranks at once. A bitmap detects that an element is hit twice; only then are the
// transfers searched for the culprits.
#include "onehop/verify.h"

#include <algorithm>
#include <new>
#include <optional>
#include <unordered_map>

#include "onehop/error.h"
#include "src/base/names.h"
#include "src/base/text.h"
#include "src/schedule/bit_permutation.h"
#include "src/schedule/element_set.h"
#include "src/schedule/exchange_partners.h"
#include "src/schedule/shape_check.h"

namespace onehop {

namespace {

using detail::array_problem;
using detail::ElementSet;
using detail::ExchangePartners;
using detail::place_problem;
using detail::transfer_problem;
using Rule = Violation::Rule;

constexpr detail::NamedValue<Rule> rules[] = {
    {Rule::shape, "shape"}, {Rule::writes, "writes"}, {Rule::reads, "reads"}, {Rule::coverage, "coverage"}};

constexpr Combine combining[] = {Combine::add, Combine::min, Combine::max, Combine::prod};

bool contains(const Slice& slice, std::int64_t element) {
  bool inside = false;
  slice.for_each_run([&](std::int64_t begin, std::int64_t count) {
    inside = inside || (element >= begin && element - begin < count);
  });
  return inside;
}

// The transfers that touch one rank, over all rounds, in order.
class TransfersByRank {
 public:
  struct Entry {
    int round;
    int transfer;
  };

  TransfersByRank(const Schedule& schedule, Place Transfer::* end)
      : begins_(static_cast<std::size_t>(schedule.ranks) + 1) {
    for_each(schedule, [&](const Transfer& t, Entry) { ++begins_[static_cast<std::size_t>((t.*end).rank) + 1]; });
    for (std::size_t rank = 1; rank < begins_.size(); ++rank) begins_[rank] += begins_[rank - 1];
    entries_.resize(begins_.back());
    auto next = begins_;
    for_each(schedule, [&](const Transfer& t, Entry entry) {
      entries_[next[static_cast<std::size_t>((t.*end).rank)]++] = entry;
    });
  }

  [[nodiscard]] std::span<const Entry> of(int rank) const {
    const std::size_t begin = begins_[static_cast<std::size_t>(rank)];
    return {entries_.data() + begin, begins_[static_cast<std::size_t>(rank) + 1] - begin};
  }

 private:
  template <class Visit>
  static void for_each(const Schedule& schedule, Visit&& visit) {
    for (std::size_t round = 0; round < schedule.rounds.size(); ++round) {
      const auto& transfers = schedule.rounds[round].transfers;
      for (std::size_t t = 0; t < transfers.size(); ++t) {
        if (transfers[t].to.slice.elements() == 0) continue;
        visit(transfers[t], Entry{static_cast<int>(round), static_cast<int>(t)});
      }
    }
  }

  std::vector<std::size_t> begins_;
  std::vector<Entry> entries_;
};

class Verifier {
 public:
  Verifier(const Schedule& schedule, int limit) : schedule_(schedule), limit_(static_cast<std::size_t>(limit)) {}

  [[nodiscard]] std::vector<Violation> run() {
    check_arrays();
    if (violations_.empty()) check_shapes();
    // The other rules assume valid transfers.
    if (violations_.empty()) {
      detail::check_cost(schedule_);
      check_ranks();
    }
    return std::move(violations_);
  }

 private:
  using Entries = std::span<const TransfersByRank::Entry>;

  void check_arrays();
  void check_shapes();
  void check_permutation(int round);
  void check_ranks();
  void check_rank(int rank, Entries writes, Entries reads, const std::vector<int>& places);
  void check_writes(Entries writes);
  void check_combined(Entries writes, Combine combine);
  void check_reads(Entries reads, Entries writes);
  void check_coverage(int rank, std::vector<ElementSet>& covered, const std::vector<int>& places);
  void report_write(Entries writes, TransfersByRank::Entry entry, std::int64_t element);
  void report_read(Entries writes, TransfersByRank::Entry entry, std::int64_t element);
  void report(Rule rule, int round, int transfer, int other, const std::string& what);

  [[nodiscard]] bool full() const { return violations_.size() >= limit_; }
  [[nodiscard]] const Transfer& at(TransfersByRank::Entry entry) const {
    return schedule_.rounds[static_cast<std::size_t>(entry.round)].transfers[static_cast<std::size_t>(entry.transfer)];
  }
  [[nodiscard]] std::string name(const Place& place) const {
    return "array " + schedule_.arrays[static_cast<std::size_t>(place.array)].name + " on rank " +
           std::to_string(place.rank);
  }
  static ElementSet& set_of(std::vector<ElementSet>& sets, const Place& place) {
    return sets[static_cast<std::size_t>(place.array)];
  }

  const Schedule& schedule_;
  std::size_t limit_;
  std::vector<Violation> violations_;
  // One set per array; all empty between two ranks.
  std::vector<ElementSet> written_;   // in this round
  std::vector<ElementSet> repeated_;  // in this round more than once, by combining transfers
  std::vector<ElementSet> covered_;   // in any round, if a rank has several
};

void Verifier::report(Rule rule, int round, int transfer, int other, const std::string& what) {
  if (!full()) violations_.push_back({rule, round, transfer, other, std::string(to_string(rule)) + ": " + what});
}

void Verifier::check_arrays() {
  if (schedule_.ranks < 1 || schedule_.ranks > max_ranks) {
    report(Rule::shape, -1, -1, -1,
           "expected a schedule of 1 to " + std::to_string(max_ranks) + " ranks, found " +
               std::to_string(schedule_.ranks));
    return;
  }
  for (const ArraySpec& array : schedule_.arrays) {
    const std::string problem = array_problem(array, schedule_.ranks);
    if (!problem.empty()) report(Rule::shape, -1, -1, -1, "array " + array.name + ": " + problem);
  }
}

void Verifier::check_shapes() {
  for (int round = 0; round < static_cast<int>(schedule_.rounds.size()); ++round) {
    const auto& transfers = schedule_.rounds[static_cast<std::size_t>(round)].transfers;
    for (int t = 0; t < static_cast<int>(transfers.size()) && !full(); ++t) {
      const std::string problem = transfer_problem(schedule_, transfers[static_cast<std::size_t>(t)]);
      if (!problem.empty()) report(Rule::shape, round, t, -1, describe(schedule_, round, t) + ": " + problem);
    }
    if (schedule_.rounds[static_cast<std::size_t>(round)].permutation) check_permutation(round);
  }
}

// A round that declares a permutation must list exactly its moves: all of them, or those of one rank.
void Verifier::check_permutation(int round) {
  const Round& now = schedule_.rounds[static_cast<std::size_t>(round)];
  const std::string name = "round " + std::to_string(round) + " and its permutation: ";
  if (const std::string problem = detail::permutation_problem(schedule_, *now.permutation); !problem.empty()) {
    report(Rule::shape, round, -1, -1, name + problem);
    return;
  }
  if (now.transfers.empty()) return;
  const Transfer& first = now.transfers.front();
  const std::size_t max_transfers = now.transfers.size() + 1;
  const auto lists = [&](std::optional<int> rank) {
    return detail::permutation_transfers(*now.permutation, first.codec, rank, max_transfers) == now.transfers;
  };
  if (lists(first.from.rank) || lists(first.to.rank) || lists(std::nullopt)) return;
  const auto expected = detail::permutation_transfers(*now.permutation, first.codec, std::nullopt, max_transfers);
  const auto [found, missing] = std::ranges::mismatch(now.transfers, expected);
  const int at = static_cast<int>(found - now.transfers.begin());
  report(Rule::shape, round, found == now.transfers.end() ? -1 : at, -1,
         name + "expected the " + std::to_string(expected.size()) +
             (expected.size() == max_transfers ? " or more" : "") +
             " transfers of the permutation, in their order, found " + std::to_string(now.transfers.size()) +
             "; the first that differs is number " + std::to_string(at) +
             ": build the round with permute_bits, or remove its permutation");
}

void Verifier::check_ranks() {
  for (const ArraySpec& array : schedule_.arrays) {
    const std::int64_t most = *std::ranges::max_element(array.elements);
    for (auto* sets : {&written_, &repeated_, &covered_}) sets->emplace_back(most);
  }
  const TransfersByRank writes(schedule_, &Transfer::to);
  const TransfersByRank reads(schedule_, &Transfer::from);
  std::unordered_map<int, std::vector<int>> places;
  for (int i = 0; i < static_cast<int>(schedule_.must_cover.size()); ++i) {
    const Place& place = schedule_.must_cover[static_cast<std::size_t>(i)];
    const std::string problem = place_problem(schedule_, place);
    if (problem.empty()) {
      places[place.rank].push_back(i);
    } else {
      report(Rule::coverage, -1, i, -1, "must_cover[" + std::to_string(i) + "]: " + problem);
    }
  }
  for (int rank = 0; rank < schedule_.ranks && !full(); ++rank) {
    check_rank(rank, writes.of(rank), reads.of(rank), places[rank]);
  }
}

void Verifier::check_rank(int rank, Entries writes, Entries reads, const std::vector<int>& places) {
  const auto take_round = [](Entries& entries, int round) {
    const auto end = std::ranges::find_if(entries, [&](const auto& entry) { return entry.round != round; });
    const auto taken = entries.first(static_cast<std::size_t>(end - entries.begin()));
    entries = entries.subspan(taken.size());
    return taken;
  };
  const bool one_round = !writes.empty() && writes.front().round == writes.back().round;
  Entries later_writes = writes;
  while (!later_writes.empty() && !full()) {
    const int round = later_writes.front().round;
    while (!reads.empty() && reads.front().round < round) reads = reads.subspan(1);
    const Entries round_writes = take_round(later_writes, round);
    const Entries round_reads = take_round(reads, round);
    check_writes(round_writes);
    // A plan reads each element of a permutation before it overwrites it; check_permutation verified the whole round.
    if (!schedule_.rounds[static_cast<std::size_t>(round)].permutation) check_reads(round_reads, round_writes);
    if (one_round) check_coverage(rank, written_, places);
    for (const auto entry : round_writes) {
      set_of(written_, at(entry).to).erase(at(entry).to.slice);
      if (at(entry).combine != Combine::replace) set_of(repeated_, at(entry).to).erase(at(entry).to.slice);
    }
  }
  if (one_round || places.empty() || full()) return;
  for (const auto entry : writes) set_of(covered_, at(entry).to).insert(at(entry).to.slice);
  check_coverage(rank, covered_, places);
  for (const auto entry : writes) set_of(covered_, at(entry).to).erase(at(entry).to.slice);
}

void Verifier::check_writes(Entries writes) {
  bool combines = false;
  for (const auto entry : writes) {
    const Transfer& t = at(entry);
    if (t.combine != Combine::replace) {
      combines = true;
      continue;
    }
    const std::int64_t element = set_of(written_, t.to).insert(t.to.slice);
    if (element != ElementSet::none) report_write(writes, entry, element);
  }
  if (!combines) return;
  for (const Combine combine : combining) check_combined(writes, combine);
}

// Transfers that combine in the same way may overlap, so each is compared with the other writes before any is inserted.
void Verifier::check_combined(Entries writes, Combine combine) {
  for (const auto entry : writes) {
    const Transfer& t = at(entry);
    if (t.combine != combine) continue;
    const std::int64_t element = set_of(written_, t.to).first_inside(t.to.slice);
    if (element != ElementSet::none) report_write(writes, entry, element);
  }
  for (const auto entry : writes) {
    const Transfer& t = at(entry);
    if (t.combine == combine) set_of(written_, t.to).insert(t.to.slice, &set_of(repeated_, t.to));
  }
}

void Verifier::check_reads(Entries reads, Entries writes) {
  std::optional<ExchangePartners> partners;
  for (const auto entry : reads) {
    const Transfer& u = at(entry);
    const std::int64_t element = set_of(written_, u.from).first_inside(u.from.slice);
    if (element == ElementSet::none) continue;
    if (!partners) {
      partners.emplace();
      for (const auto write : writes) partners->add(at(write));
    }
    // If the partner replaces, rule 2 ensures that no other transfer writes there.
    const Transfer* const partner = partners->of(u);
    if (partner == nullptr) {
      report_read(writes, entry, element);
    } else if (partner->combine != Combine::replace) {
      const std::int64_t repeated = set_of(repeated_, u.from).first_inside(u.from.slice);
      if (repeated != ElementSet::none) report_read(writes, entry, repeated);
    }
  }
}

void Verifier::check_coverage(int rank, std::vector<ElementSet>& covered, const std::vector<int>& places) {
  for (const int index : places) {
    const Place& place = schedule_.must_cover[static_cast<std::size_t>(index)];
    const std::int64_t element = set_of(covered, place).first_missing(place.slice);
    if (element == ElementSet::none) continue;
    report(Rule::coverage, -1, index, -1,
           "must_cover[" + std::to_string(index) + "] (" + name(place) + ", " +
               base::counted(place.slice.elements(), "element") + "): expected every element to be written by some " +
               "round, found none that writes element " + std::to_string(element) + ": a transfer to rank " +
               std::to_string(rank) + " is missing or writes elsewhere");
  }
}

void Verifier::report_write(Entries writes, TransfersByRank::Entry entry, std::int64_t element) {
  const Transfer& t = at(entry);
  int other = entry.transfer;
  for (const auto candidate : writes) {
    const Transfer& o = at(candidate);
    const bool went_in_before = t.combine == Combine::replace ? o.combine == Combine::replace : o.combine < t.combine;
    if (!went_in_before || o.to.array != t.to.array || !contains(o.to.slice, element)) continue;
    other = candidate.transfer;  // the first to write there, which is this transfer if it names the element twice
    break;
  }
  const int later = std::max(entry.transfer, other);
  const int earlier = std::min(entry.transfer, other);
  const std::string by_whom = later == earlier ? "the transfer itself" : describe(schedule_, entry.round, earlier);
  report(Rule::writes, entry.round, later, earlier,
         describe(schedule_, entry.round, later) + " writes element " + std::to_string(element) + " of " + name(t.to) +
             ", expected no other write to it in this round, found one by " + by_whom +
             ": remove one, put it into another round, or let both combine in the same way");
}

void Verifier::report_read(Entries writes, TransfersByRank::Entry entry, std::int64_t element) {
  const Transfer& u = at(entry);
  int writer = -1;
  for (const auto candidate : writes) {
    const Transfer& t = at(candidate);
    if (t.to.array != u.from.array || !contains(t.to.slice, element)) continue;
    writer = candidate.transfer;
    break;
  }
  report(Rule::reads, entry.round, entry.transfer, writer,
         describe(schedule_, entry.round, entry.transfer) + " reads element " + std::to_string(element) + " of " +
             name(u.from) + ", expected no write to it in this round, found one by " +
             describe(schedule_, entry.round, writer) +
             ": put one of them into another round, or make the two an exact exchange between two ranks");
}

}  // namespace

std::vector<Violation> verify(const Schedule& schedule, int limit) {
  if (limit < 1) throw BadInput("verify: expected a limit of 1 violation or more, found " + std::to_string(limit));
  try {
    return Verifier(schedule, limit).run();
  } catch (const std::bad_alloc&) {
    throw BadInput("verify: expected a schedule that this machine has enough memory to verify, found one that needs " +
                   std::string("more: verify the same pattern on smaller arrays"));
  }
}

void verify_or_throw(const Schedule& schedule) {
  const auto violations = verify(schedule, 1);
  if (!violations.empty()) throw BadInput(violations.front().message);
}

std::string_view to_string(Violation::Rule rule) { return detail::name_of(rule, rules); }

}  // namespace onehop
