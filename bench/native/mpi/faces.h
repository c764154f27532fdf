// Exchanges faces of staggered fields in plain MPI: packs, Isend and Irecv, unpacks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/native/mpi/peers.h"
#include "lattice/geometry/face_exchange.h"
#include "onehop/lattice/geometry.h"

namespace onehop::bench {

class MpiFaces final : public lattice::detail::FaceExchange {
 public:
  // `field` has one element of `element_bytes` bytes for each vector of the geometry and each ghost. Collective.
  MpiFaces(const Group& group, const lattice::Geometry& geometry, std::int64_t element_bytes,
           std::span<std::byte> field)
      : arrays_{field} {
    for (const int parity : {0, 1}) {
      peers_.push_back(std::move(mpi_halo_peers(group, "packed, one message a neighbour, Isend/Irecv").at(0)));
      peers_.back()->prepare(geometry.halo(element_bytes, ElementType::bytes, parity, group.rank()), arrays_);
    }
  }
  void start(int parity) override { peers_[static_cast<std::size_t>(parity)]->start(); }
  void finish(int parity) override { peers_[static_cast<std::size_t>(parity)]->finish(); }

 private:
  std::array<std::span<std::byte>, 1> arrays_;
  std::vector<std::unique_ptr<HaloPeer>> peers_;
};

[[nodiscard]] inline auto mpi_faces(const Group& group) {
  return [group](const lattice::Geometry& geometry, std::int64_t bytes, std::span<std::byte> field) {
    return std::make_unique<MpiFaces>(group, geometry, bytes, field);
  };
}

}  // namespace onehop::bench
