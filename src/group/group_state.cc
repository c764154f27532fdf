#include "src/group/group_state.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "onehop/error.h"
#include "src/group/leaving.h"
#include "src/group/require_same.h"

namespace onehop::detail {
namespace {

// Moves the object of an owner to the heap and leaks it, so that this process never destroys it.
template <class Owner>
void leave_to_parent(Owner& owner) {
  [[maybe_unused]] const auto* kept = new Owner(std::move(owner));  // NOLINT(cppcoreguidelines-owning-memory)
}

// The contribution of a rank that refuses its arguments begins with these bytes, and no other one does.
constexpr std::array<std::uint64_t, 2> refusal{0xB7E151628AED2A6AU, 0xBF7158809CF4F3C7U};

thread_local std::uint64_t gathers_begun = 0;

}  // namespace

std::uint64_t allgathers_begun() noexcept { return gathers_begun; }

void GroupState::check_process() const {
  if (process.is_this_process()) return;
  throw_forked(process, "the group of rank " + std::to_string(rank) + " of " + std::to_string(size));
}

GroupState::~GroupState() {
  if (process.is_this_process()) {
    left(*this);
    return;
  }
  // In a forked child, everything that the group shares with its peers and with MPI belongs to the parent and is not
  // closed.
  leave_to_parent(bootstrap);
  leave_to_parent(shared_memory);
  leave_to_parent(remote);
  leave_to_parent(ucx);
  leave_to_parent(reports_owner);
}

std::string GroupState::name_of(int other) const {
  const auto at = static_cast<std::size_t>(other);
  const std::string machine = spans_hosts ? " on " + *pages[at].machine : "";
  const std::string process = "process " + std::to_string(pages[at].pid) + machine + ")";
  if (world_ranks.empty()) return "rank " + std::to_string(other) + " (" + process;
  return "rank " + std::to_string(other) + " of this group (rank " + std::to_string(world_ranks[at]) +
         " of the world; " + process;
}

bool GroupState::has_closed(int other) const {
  const auto own = static_cast<std::uint32_t>(other) + 1;  // it reports itself if it has aborted the group
  return has_left(other) && pages[static_cast<std::size_t>(other)].page->reported_lost.load() != own;
}

std::string GroupState::where_to_look(int other) const {
  if (const int elsewhere = missed_elsewhere_by(other); elsewhere >= 0) {
    const std::string first = "rank " + std::to_string(elsewhere);
    return "it had lost " + first + " of the world before; see the output of " + first + " of the world for the reason";
  }
  if (has_closed(other)) return "do all ranks make the same number of steps?";
  const int world = world_ranks.empty() ? other : world_ranks[static_cast<std::size_t>(other)];
  return "see the output of rank " + std::to_string(world) + (world_ranks.empty() ? "" : " of the world") +
         " for the reason";
}

int GroupState::other_rank(std::uint32_t word) const noexcept {
  if (word == 0 || word > static_cast<std::uint32_t>(size) || word - 1 == static_cast<std::uint32_t>(rank)) return -1;
  return static_cast<int>(word) - 1;
}

int GroupState::missed_by(int gone) const {
  return other_rank(pages[static_cast<std::size_t>(gone)].page->missed.load(std::memory_order_acquire));
}

int GroupState::missed_elsewhere_by(int gone) const {
  if (const RankPage* const page = pages.at(static_cast<std::size_t>(gone)).page; page != nullptr)
    return static_cast<int>(page->missed_elsewhere.load(std::memory_order_acquire)) - 1;
  const LossReports* const told = reports.load(std::memory_order_acquire);
  return told != nullptr ? told->heard_elsewhere(gone) : -1;
}

int GroupState::unanswered_by(int gone) {
  const RankPage* const page = pages[static_cast<std::size_t>(gone)].page;
  const int silent = page == nullptr ? -1 : other_rank(page->unanswered.load(std::memory_order_acquire));
  return silent < 0 || is_gone(silent) ? -1 : silent;
}

int GroupState::end_of_waits(int peer) {
  for (int steps = 0; steps < size && peer != rank; ++steps) {
    const RankPage* const page = pages[static_cast<std::size_t>(peer)].page;
    int next = page == nullptr ? -1 : unanswered_by(peer);
    for (std::size_t i = 0; page != nullptr && next < 0 && i < page->waits.size(); ++i) {
      if (const std::optional<WaitSeen> seen = page->waits[i].read(); seen && seen->peer < size) next = seen->peer;
    }
    if (next < 0) return peer;
    peer = next;
  }
  return -1;
}

bool GroupState::is_gone(int other) {
  const RankPage* const page = pages[static_cast<std::size_t>(other)].page;
  return page == nullptr || has_left(other) || page->leaving.load(std::memory_order_acquire) != 0 || has_ended(other);
}

int GroupState::first_gone(int gone, bool& unsure) {
  const int missed = missed_by(gone);
  if (missed < 0) return gone;
  if (is_gone(missed)) return missed;
  unsure = true;
  return gone;
}

bool GroupState::has_ended(int other) {
  const PeerPage& peer = pages[static_cast<std::size_t>(other)];
  // A process number of another machine means nothing here.
  const bool is_here =
      peer.page != nullptr || (remote == nullptr && peer.host == pages[static_cast<std::size_t>(rank)].host);
  return is_here && processes.ended(other, peer.pid);
}

PeerStatus GroupState::look_at_peers(int waited_for) {
  PeerStatus found;
  int reported = -1;
  for (int r = 0; r < size; ++r) {
    const PeerPage& peer = pages[static_cast<std::size_t>(r)];
    if (r == rank) continue;
    // The order matters: a rank reports what it saw before it closes its group, and closes its group before it ends.
    const bool ended = has_ended(r);
    if (peer.page == nullptr) {
      if (found.lost < 0 && ended) found.lost = r;
      continue;
    }
    const bool closed = has_left(r);
    const int peer_reports = other_rank(peer.page->reported_lost.load(std::memory_order_acquire));
    // A peer that left because another rank had already left or died names that rank.
    const int first = ended || closed ? first_gone(r, found.unsure) : r;
    // One that ended because of a rank of another group comes after those that ended by themselves.
    const bool precedes = found.lost < 0 || (missed_elsewhere_by(found.lost) >= 0 && missed_elsewhere_by(first) < 0);
    if (ended && !closed && precedes) found.lost = first;
    if (r == waited_for && closed) found.closed = first;
    // A rank that gave up because another rank died reports that rank.
    if (reported < 0) reported = peer_reports;
  }
  const LossReports* const told = reports.load(std::memory_order_acquire);
  if (reported < 0 && told != nullptr) reported = other_rank(static_cast<std::uint32_t>(told->heard() + 1));
  if (reported >= 0) found.lost = reported;
  return found;
}

PeerStatus GroupState::poll_peers(int waited_for) {
  PeerStatus found = look_at_peers(waited_for);
  // A rank that died first may have been looked at before it died, and a rank that left because of it after that. A
  // rank that fails closes its groups one after the other.
  constexpr int looks = 500;
  for (int look = 0; look < looks && (found.lost >= 0 || found.closed >= 0) && (look == 0 || found.unsure); ++look) {
    if (look > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    found = look_at_peers(waited_for);
  }
  return found;
}

int GroupState::gone_rank() {
  if (const int lost = poll_peers(-1).lost; lost >= 0) return lost;
  for (int r = 0; r < size; ++r) {
    bool unsure = false;
    if (r != rank && has_left(r)) return first_gone(r, unsure);
  }
  const LossReports* const told = reports.load(std::memory_order_acquire);
  return told != nullptr ? told->unreachable() : -1;
}

void GroupState::tell_lost(int lost) noexcept {
  own_page().reported_lost.store(static_cast<std::uint32_t>(lost) + 1, std::memory_order_release);
  if (LossReports* const told = reports.load(std::memory_order_acquire); told != nullptr) told->tell(lost);
  note_loss(*this, lost);
}

void GroupState::throw_if_lost(const std::string& step, int polls) {
  for (int poll = 0; poll < polls; ++poll) {
    if (poll > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const int lost = poll_peers(-1).lost; lost >= 0) {
      tell_lost(lost);
      throw PeerLost(lost, name_of(lost) + " has ended while rank " + std::to_string(rank) + " was in set-up (" + step +
                               "); " + where_to_look(lost));
    }
  }
}

Gathered GroupState::allgather(std::span<const std::byte> mine) {
  Gathered all = gather(mine);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].size() < sizeof refusal || std::memcmp(all[r].data(), refusal.data(), sizeof refusal) != 0) continue;
    const std::span<const std::byte> text = all[r].subspan(sizeof refusal);
    throw Mismatch("expected the same valid arguments on every rank, found that rank " + std::to_string(r) +
                   " refuses its own: " + std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  }
  return all;
}

void GroupState::refuse(std::string_view text) noexcept {
  if (size == 1) return;
  try {
    const auto mark = std::as_bytes(std::span(refusal));
    std::vector<std::byte> mine(mark.begin(), mark.end());
    const auto said = std::as_bytes(std::span(text));
    mine.insert(mine.end(), said.begin(), said.end());
    constexpr double patience = 10;  // a function of the program (from_allgather) has its own
    bootstrap->set_timeout(timeout > 0 ? std::min(timeout, patience) : patience);
    static_cast<void>(gather(mine));
  } catch (...) {  // NOLINT(bugprone-empty-catch): the caller throws what this rank refuses
  }
  bootstrap->set_timeout(timeout);  // that of the group, by which other threads wait for messages, has stayed
  if (!why_out_of_step.empty()) aborted(*this);  // so that the others do not wait for this rank in later steps
}

Gathered GroupState::gather(std::span<const std::byte> mine) {
  check_process();
  if (size > 1) ++gathers_begun;
  if (!why_out_of_step.empty()) {
    throw Error(why_out_of_step + "; so rank " + std::to_string(rank) +
                " did not complete an earlier collective step of this group, and its steps no longer match those of "
                "the others: make a new group, or start the program again");
  }
  const ShownStep shown(own_page());
  try {
    return bootstrap->allgather(mine);
  } catch (const PeerLost& error) {
    if (error.rank() < 0 || error.rank() >= size) throw;  // a function of the user may name any
    // A process that is ending says only at its very end whether it leaves in order.
    const RankPage* const page = pages[static_cast<std::size_t>(error.rank())].page;
    for (int look = 0; look < 500 && page != nullptr && page->leaving.load() != 0; ++look) {
      if (has_left(error.rank()) || has_ended(error.rank())) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const PeerStatus status = poll_peers(error.rank());
    // A rank elsewhere does not show whether it has left in order.
    int first = status.lost >= 0 || shares_memory(error.rank()) ? status.lost : error.rank();
    if (first >= 0) {
      tell_lost(first);
    } else {
      // It has left in order, perhaps because it is ending, or because another rank had left before it. Ranks that wait
      // for this one must name the first of them, not this rank.
      first = status.closed >= 0 ? status.closed : error.rank();
      note_loss(*this, first);
    }
    if (has_closed(first)) {
      throw PeerLost(first, name_of(first) + " has closed its group while rank " + std::to_string(rank) +
                                " waited for rank " + std::to_string(error.rank()) + " in a collective step of it; " +
                                where_to_look(first));
    }
    const bool lost_elsewhere = missed_elsewhere_by(first) >= 0;
    if (first == error.rank() && !lost_elsewhere) throw;
    throw PeerLost(first, (first == error.rank() ? "" : name_of(first) + " has ended, and after it ") + error.what() +
                              (lost_elsewhere ? "; " + where_to_look(first) : ""));
  } catch (const Error& error) {
    why_out_of_step = error.what();
    throw;
  } catch (...) {
    why_out_of_step = "an exception of the program";
    throw;
  }
}

}  // namespace onehop::detail
