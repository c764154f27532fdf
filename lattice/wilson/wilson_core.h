// The Wilson operator on sites of one parity at a time, in one precision, with faces that travel meanwhile. Vectors are those of
// one colour of the whole lattice, [vector][rhs][spin][colour][re, im][lane].
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lattice/support/buffer.h"
#include "lattice/support/team.h"
#include "lattice/wilson/wilson_kernel.h"
#include "lattice/wilson/wilson_storage.h"
#include "onehop/channel.h"

namespace onehop::lattice::detail {

// How faces travel other than through channels: what benchmarks compare with. A face has so many bytes at `outgoing` when start() sends
// them all; after finish() what has come lies at `incoming`. Sides are those of WilsonFace, as this rank sees them.
class WilsonExchange {
 public:
  virtual ~WilsonExchange() = default;
  [[nodiscard]] virtual std::span<std::byte> outgoing(int parity, int side) = 0;
  virtual void start(int parity) = 0;
  virtual void finish(int parity) = 0;
  [[nodiscard]] virtual const std::byte* incoming(int parity, int side) = 0;
};

template <class T>
class WilsonCore {
 public:
  // What dslash() makes of the hopping term h: see WilsonForm. Clover blocks are those of the sites that are written.
  struct Tail {
    WilsonForm form = WilsonForm::plain;
    double factor = 1;
    double other_factor = 1;
    const T* other = nullptr;
    bool inverse = false;  // the inverse blocks
  };

  // Collective. The storage and the team must outlive it.
  WilsonCore(const WilsonStorage<T>& storage, Team& team, int num_rhs,
             std::unique_ptr<WilsonExchange> exchange = nullptr, bool half_halo = false);

  [[nodiscard]] const WilsonStorage<T>& storage() const { return storage_; }
  [[nodiscard]] int num_rhs() const { return num_rhs_; }
  [[nodiscard]] std::int64_t element() const { return std::int64_t{24} * storage_.lanes() * num_rhs_; }
  [[nodiscard]] std::size_t size(int parity) const {
    return static_cast<std::size_t>(storage_.vectors(parity) * element());
  }

  // Of sites of `parity`, from those of the other one. Collective.
  void dslash(int parity, const T* in, T* out, const Tail& tail, bool dagger = false);
  // out = A in, or the inverse of A; without a clover term a copy.
  void blocks(int parity, const T* in, T* out, bool inverse);

  // Seconds that the calling thread waited for faces, and those in which it projected and sent them; flop of all applications, and the
  // bytes that they must move at least.
  double waited = 0;
  double sending = 0;
  double flops = 0;
  double bytes = 0;
  // Benchmarks: faces stay where they are, and what is beyond the block is whatever arrived last.
  bool alone = false;
  // Results are stored past the caches: set where fields and links are longer than these.
  bool past_caches = false;
  // The kernels ask ahead for what they will read: set where that does not come from the caches close by.
  bool fetches = false;
  // There is nothing beyond the block: the operator of a domain by itself, without communication.
  bool domain = false;

 private:
  struct Out {
    int side = 0;
    Sender sender;
    std::vector<std::int32_t> vectors;  // counted from the first of their parity
  };
  struct In {
    int side = 0;
    Receiver receiver;
    Buffer<T> wide;  // half faces: what has come, in full length
  };

  void open_faces();
  void count(int parity, WilsonForm form);
  [[nodiscard]] const T* nothing();
  void send_faces(int parity, const T* in, bool dagger);
  // Bytes of a face of so many vectors on its way.
  [[nodiscard]] std::int64_t face_bytes(std::int64_t vectors) const;
  [[nodiscard]] const T* arrived(In& face, const std::byte* bytes);
  // body(first, last) by every thread of the team.
  template <class Body>
  void spread(std::int64_t first, std::int64_t last, const Body& body);

  const WilsonStorage<T>& storage_;
  Team& team_;
  int num_rhs_;
  std::unique_ptr<WilsonExchange> exchange_;
  bool half_halo_;
  Buffer<T> wide_;                       // half faces: one before it is shortened
  Buffer<T> nothing_;                    // as long as the longest message, of zeros
  std::array<std::vector<Out>, 2> out_;  // by the parity that travels
  std::array<std::vector<In>, 2> in_;
};

extern template class WilsonCore<float>;
extern template class WilsonCore<double>;

}  // namespace onehop::lattice::detail
