// The Wilson operator on sites of one colour at a time, in one precision, with faces that travel meanwhile. Vectors are those of
// one colour of the whole lattice, [vector][copy][spin][colour][re, im][lane].
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
  [[nodiscard]] virtual std::span<std::byte> outgoing(int colour, int side) = 0;
  virtual void start(int colour) = 0;
  virtual void finish(int colour) = 0;
  [[nodiscard]] virtual const std::byte* incoming(int colour, int side) = 0;
};

template <class T>
class WilsonCore {
 public:
  // What hop() makes of the hopping term h: see WilsonForm. Clover blocks are those of the sites that are written.
  struct Tail {
    WilsonForm form = WilsonForm::plain;
    double factor = 1;
    double other_factor = 1;
    const T* other = nullptr;
    bool inverse = false;  // the inverse blocks
  };

  // Collective. The storage and the team must outlive it.
  WilsonCore(const WilsonStorage<T>& storage, Team& team, int copies,
             std::unique_ptr<WilsonExchange> exchange = nullptr, bool half_faces = false);

  [[nodiscard]] const WilsonStorage<T>& storage() const { return storage_; }
  [[nodiscard]] int copies() const { return copies_; }
  [[nodiscard]] std::int64_t element() const { return std::int64_t{24} * storage_.lanes() * copies_; }
  [[nodiscard]] std::size_t size(int colour) const {
    return static_cast<std::size_t>(storage_.vectors(colour) * element());
  }

  // Of sites of `colour`, from those of the other one. Collective.
  void hop(int colour, const T* in, T* out, const Tail& tail, bool dagger = false);
  // out = A in, or the inverse of A; without a clover term a copy.
  void blocks(int colour, const T* in, T* out, bool inverse);

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
    std::vector<std::int32_t> vectors;  // counted from the first of their colour
  };
  struct In {
    int side = 0;
    Receiver receiver;
    Buffer<T> wide;  // half faces: what has come, in full length
  };

  void open_faces();
  void count(int colour, WilsonForm form);
  [[nodiscard]] const T* nothing();
  void send_faces(int colour, const T* in, bool dagger);
  // Bytes of a face of so many vectors on its way.
  [[nodiscard]] std::int64_t face_bytes(std::int64_t vectors) const;
  [[nodiscard]] const T* arrived(In& face, const std::byte* bytes);
  // body(first, last) by every thread of the team.
  template <class Body>
  void spread(std::int64_t first, std::int64_t last, const Body& body);

  const WilsonStorage<T>& storage_;
  Team& team_;
  int copies_;
  std::unique_ptr<WilsonExchange> exchange_;
  bool half_faces_;
  Buffer<T> wide_;                       // half faces: one before it is shortened
  Buffer<T> nothing_;                    // as long as the longest message, of zeros
  std::array<std::vector<Out>, 2> out_;  // by the colour that travels
  std::array<std::vector<In>, 2> in_;
};

extern template class WilsonCore<float>;
extern template class WilsonCore<double>;

}  // namespace onehop::lattice::detail
