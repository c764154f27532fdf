// The Wilson hopping term on the sites of one parity, in one precision; the halo exchange overlaps with the interior.
// Fields hold the sites of one global parity, [vector][rhs][spin][colour][re, im][lane].
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lattice/support/buffer.h"
#include "lattice/wilson/wilson_kernel.h"
#include "lattice/wilson/wilson_storage.h"
#include "onehop/channel.h"
#include "src/base/thread_pool.h"

namespace onehop::lattice::detail {

// A halo exchange that replaces the channels, for benchmarks. Callers write the faces to outgoing(), call start() to
// send all of them, and finish() before they read incoming(). Sides are numbered as in WilsonFace, from the view of
// this rank.
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
  // How dslash() combines the hopping term with other terms: see WilsonForm.
  struct Tail {
    WilsonForm form = WilsonForm::plain;
    double factor = 1;
    double other_factor = 1;
    const T* other = nullptr;
    bool inverse = false;  // use the inverse of the clover blocks
  };

  // `half_halo`: faces travel as 16-bit integers. The storage and the pool must outlive this object. Collective.
  WilsonCore(const WilsonStorage<T>& storage, const base::ThreadPool& pool, int num_rhs,
             std::unique_ptr<WilsonExchange> exchange = nullptr, bool half_halo = false);

  [[nodiscard]] const WilsonStorage<T>& storage() const { return storage_; }
  [[nodiscard]] int num_rhs() const { return num_rhs_; }
  [[nodiscard]] std::int64_t element() const { return std::int64_t{24} * storage_.lanes() * num_rhs_; }
  [[nodiscard]] std::size_t size(int parity) const {
    return static_cast<std::size_t>(storage_.vectors(parity) * element());
  }

  // Computes the sites of `parity` in `out` from the sites of the other parity in `in`. Collective.
  void dslash(int parity, const T* in, T* out, const Tail& tail, bool dagger = false);
  // out = A in, or A^-1 in; without a clover term A = 1.
  void blocks(int parity, const T* in, T* out, bool inverse);

  // Totals over all applications: seconds in which the calling thread waited for faces, seconds in which it projected
  // and sent them, floating-point operations, and the smallest possible number of bytes moved.
  double waited = 0;
  double sending = 0;
  double flops = 0;
  double bytes = 0;
  // For benchmarks: skips the exchange and reads the ghosts that arrived last.
  bool alone = false;
  // Results are written with non-temporal stores: set if fields and links together exceed the last-level cache.
  bool past_caches = false;
  // The kernels prefetch what they will read: set if fields and links together exceed the inner caches.
  bool fetches = false;
  // Ghosts are 0 and nothing is sent: the operator on this rank's block with Dirichlet boundaries.
  bool domain = false;

 private:
  struct Out {
    int side = 0;
    Sender sender;
    std::vector<std::int32_t> vectors;  // of the face, counted from the first vector of their parity
  };
  struct In {
    int side = 0;
    Receiver receiver;
    Buffer<T> wide;  // with half_halo: the received face, converted to T
  };

  void open_faces();
  void count(int parity, WilsonForm form);
  [[nodiscard]] const T* zeros();
  void send_faces(int parity, const T* in, bool dagger);
  // Bytes of the message for a face of this many vectors.
  [[nodiscard]] std::int64_t face_bytes(std::int64_t vectors) const;
  [[nodiscard]] const T* arrived(In& face, const std::byte* bytes);
  // Divides [first, last) among the threads of the pool. Each calls body(first, last) for its part.
  template <class Body>
  void divide(std::int64_t first, std::int64_t last, const Body& body);

  const WilsonStorage<T>& storage_;
  const base::ThreadPool& pool_;
  int num_rhs_;
  std::unique_ptr<WilsonExchange> exchange_;
  bool half_halo_;
  Buffer<T> wide_;                       // with half_halo: a face before its conversion to 16-bit integers
  Buffer<T> zeros_;                      // as long as the longest face
  std::array<std::vector<Out>, 2> out_;  // by the parity that is sent
  std::array<std::vector<In>, 2> in_;
};

extern template class WilsonCore<float>;
extern template class WilsonCore<double>;

}  // namespace onehop::lattice::detail
