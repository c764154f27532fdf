// Common parts of the MPI candidates of the halo: a rank's work in a schedule's first round, and its local copies.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "measure/mpi/context.h"
#include "measure/mpi/peers.h"
#include "measure/pack.h"

namespace onehop::measure {

// One transfer as one rank sees it.
struct HaloPiece {
  int peer = 0;
  int tag = 0;  // number among the transfers between these two ranks, the same on both
  int array = 0;
  std::int64_t element_bytes = 8;
  Slice slice;
};

struct HaloCopy {
  HaloPiece from;
  HaloPiece to;
};

// The work of a rank in a schedule's first round.
struct HaloWork {
  std::vector<HaloPiece> sends;
  std::vector<HaloPiece> receives;
  std::vector<HaloCopy> copies;

  HaloWork() = default;
  HaloWork(const Schedule& schedule, int rank) {
    if (schedule.rounds.empty()) return;
    std::map<std::pair<int, int>, int> tags;
    for (const Transfer& transfer : schedule.rounds.front().transfers) {
      const int tag = tags[{transfer.from.rank, transfer.to.rank}]++;
      const auto piece = [&](const Place& place, int peer) {
        return HaloPiece{peer, tag, place.array,
                         schedule.arrays.at(static_cast<std::size_t>(place.array)).element_bytes, place.slice};
      };
      const bool from_here = transfer.from.rank == rank, to_here = transfer.to.rank == rank;
      if (from_here && to_here) {
        copies.push_back({piece(transfer.from, rank), piece(transfer.to, rank)});
      } else if (from_here) {
        sends.push_back(piece(transfer.from, transfer.to.rank));
      } else if (to_here) {
        receives.push_back(piece(transfer.to, transfer.from.rank));
      }
    }
  }
};

// The base class of all candidates, which does the copies inside the rank.
template <class Abi>
class MpiHalo : public HaloPeer {
 public:
  MpiHalo(const MpiApi<Abi>& api, std::string name) : context_(api), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }

  void prepare(const Schedule& schedule, std::span<const std::span<std::byte>> arrays, std::int64_t enlargement) final {
    arrays_.assign(arrays.begin(), arrays.end());
    const HaloWork work(schedule, context_.rank);
    copies_.clear();
    std::int64_t longest = 0;
    for (const HaloCopy& copy : work.copies) {
      copies_.push_back({copy.from.array, Rows(copy.from.slice, copy.from.element_bytes), copy.to.array,
                         Rows(copy.to.slice, copy.to.element_bytes)});
      longest = std::max(longest, copies_.back().from_rows.bytes());
    }
    scratch_ = Buffer(longest);
    prepare_messages(work, enlargement);
  }

 protected:
  virtual void prepare_messages(const HaloWork& work, std::int64_t enlargement) = 0;
  [[nodiscard]] std::byte* array(int number) const { return arrays_[static_cast<std::size_t>(number)].data(); }

  void copy_inside() const {
    for (const Copy& copy : copies_) {
      if (copy.from_rows.congruent(copy.to_rows)) {
        copy.from_rows.copy(array(copy.to), copy.to_rows, array(copy.from));
      } else {
        copy.from_rows.pack(scratch_.data(), array(copy.from));
        copy.to_rows.unpack(array(copy.to), scratch_.data());
      }
    }
  }

  MpiContext<Abi> context_;

 private:
  struct Copy {
    int from = 0;
    Rows from_rows;
    int to = 0;
    Rows to_rows;
  };
  std::string name_;
  std::vector<std::span<std::byte>> arrays_;
  std::vector<Copy> copies_;
  Buffer scratch_;
};

// Add the candidates that pack by hand, and those that use MPI's datatypes, whose names begin with `prefix`.
void add_packed_halos(const detail::AnyMpi& mpi, std::string_view prefix,
                      std::vector<std::unique_ptr<HaloPeer>>& peers);
void add_derived_halos(const detail::AnyMpi& mpi, std::string_view prefix,
                       std::vector<std::unique_ptr<HaloPeer>>& peers);

}  // namespace onehop::measure
