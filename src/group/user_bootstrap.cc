#include "src/group/user_bootstrap.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::detail {
namespace {

// The header of every contribution.
struct Label {
  static constexpr std::uint64_t magic = 0x6c'61'62'65'6c'68'6f'31;
  std::uint64_t mark = magic;
  std::uint64_t step = 0;  // all-gathers of this group before this one
  std::uint64_t bytes = 0;
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

std::string text(std::uint64_t value) { return std::to_string(value); }

class UserBootstrap final : public Bootstrap {
 public:
  UserBootstrap(int rank, int size, AllGather allgather) : rank_(rank), size_(size), allgather_(std::move(allgather)) {}
  UserBootstrap(int rank, int size, const AllGatherMaker& maker, std::string name)
      : rank_(rank), size_(size), maker_(maker), name_(std::move(name)) {
    allgather_ = maker(name_, rank, size, [gone = gone_] { return *gone ? (*gone)() : -1; });
    if (!allgather_) throw BadInput("from_allgather: expected a maker that returns an all-gather, found none");
  }
  ~UserBootstrap() override { *gone_ = nullptr; }  // the all-gather may be held elsewhere
  UserBootstrap(const UserBootstrap&) = delete;
  UserBootstrap& operator=(const UserBootstrap&) = delete;

  void watch(std::function<int()> gone, std::function<void(int)> /*tell*/) override { *gone_ = std::move(gone); }
  void set_world_ranks(std::vector<int> ranks) override { world_ranks_ = std::move(ranks); }

  bool can_split() const override { return maker_ != nullptr; }
  std::unique_ptr<Bootstrap> split(const GroupPart& part) override {
    const std::string name = name_ + "/" + std::to_string(splits_++) + "." + std::to_string(part.color);
    if (part.members.empty()) return nullptr;
    return make_user_bootstrap(part.rank, static_cast<int>(part.members.size()), maker_, name);
  }

  Gathered allgather(std::span<const std::byte> mine) override {
    Label own;
    own.step = step_++;
    own.bytes = mine.size();
    own.rank = rank_;
    own.size = size_;
    std::vector<std::byte> labelled(sizeof own + mine.size());
    std::memcpy(labelled.data(), &own, sizeof own);
    if (!mine.empty()) std::memcpy(labelled.data() + sizeof own, mine.data(), mine.size());
    const Gathered all = gather(labelled);
    if (all.size() != static_cast<std::size_t>(size_)) {
      refuse("it returned " + base::counted(static_cast<std::int64_t>(all.size()), "entry") + ", but the group has " +
             base::counted(size_, "rank"));
    }
    for (std::size_t r = 0; r < all.size(); ++r) check(all[r], static_cast<int>(r), own);
    return all.without_first(sizeof own);
  }

 private:
  // Calls the all-gather. The maker knows a lost rank by its number in the part only.
  Gathered gather(std::span<const std::byte> labelled) {
    try {
      return allgather_(labelled);
    } catch (const PeerLost& error) {
      const int lost = error.rank();
      if (lost < 0 || lost >= static_cast<int>(world_ranks_.size())) throw;
      throw PeerLost(lost, std::string(error.what()) + " (rank " +
                               std::to_string(world_ranks_[static_cast<std::size_t>(lost)]) + " of the world)");
    }
  }

  // Checks the label of what came from a rank. There are as many as ranks, on every rank, so texts are made only for
  // errors.
  void check(std::span<const std::byte> entry, int rank, const Label& own) const {
    Label label;
    label.mark = 0;
    if (entry.size() >= sizeof label) std::memcpy(&label, entry.data(), sizeof label);
    const bool fits = label.mark == Label::magic && label.rank == rank && label.size == size_ &&
                      entry.size() - sizeof label == label.bytes && label.step == own.step;
    if (!fits) refuse_entry(entry.size(), label, rank, own);
  }

  [[noreturn]] void refuse_entry(std::size_t bytes, const Label& label, int rank, const Label& own) const {
    const std::string name = "entry " + std::to_string(rank) + " of its result";
    const std::string found = name + " (" + base::counted(static_cast<std::int64_t>(bytes), "byte") + ")";
    const auto contribution = "the contribution of rank " + std::to_string(rank);
    if (bytes < sizeof label) {
      refuse(name + " has " + base::counted(static_cast<std::int64_t>(bytes), "byte") +
             ", fewer than any contribution (at least " + text(sizeof label) + ")");
    }
    if (label.mark != Label::magic) {
      refuse(found + " does not begin like " + contribution + "; or do the ranks run different versions of onehop?");
    }
    if (label.rank != rank) refuse(name + " is the contribution of rank " + std::to_string(label.rank));
    if (label.size != size_) {
      refuse(name + " comes from a group of " + base::counted(label.size, "rank") + ", not of " +
             std::to_string(size_));
    }
    if (bytes - sizeof label != label.bytes) {
      refuse(name + " has " + base::counted(static_cast<std::int64_t>(bytes), "byte") + ", but " + contribution +
             " has " + text(sizeof label + label.bytes) +
             " (contributions may differ in length; none may be cut or padded)");
    }
    refuse(name + " belongs to all-gather " + text(label.step) + " of that rank, but this is number " + text(own.step) +
           " here: it returned an old one, or the ranks make different steps");
  }

  [[noreturn]] void refuse(const std::string& found) const {
    throw BadInput("the all-gather passed to Group::from_allgather failed on rank " + std::to_string(rank_) + ": " +
                   found +
                   "; expected one entry per rank, in the order of ranks, each with exactly the bytes that the rank "
                   "passed");
  }

  int rank_;
  int size_;
  AllGather allgather_;
  AllGatherMaker maker_;  // null: the group can be split only in memory
  std::string name_;
  std::vector<int> world_ranks_;  // of a part
  std::shared_ptr<std::function<int()>> gone_ = std::make_shared<std::function<int()>>();
  int splits_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace

std::unique_ptr<Bootstrap> make_user_bootstrap(int rank, int size, AllGather allgather) {
  return std::make_unique<UserBootstrap>(rank, size, std::move(allgather));
}

std::unique_ptr<Bootstrap> make_user_bootstrap(int rank, int size, const AllGatherMaker& maker,
                                               const std::string& name) {
  return std::make_unique<UserBootstrap>(rank, size, maker, name);
}

}  // namespace onehop::detail
