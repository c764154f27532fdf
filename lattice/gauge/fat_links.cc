#include "lattice/gauge/fat_links.h"

#include "lattice/geometry/site_loop.h"

namespace onehop::lattice::detail {

namespace {

// Pointers and strides for the staples of direction mu in the other directions ("across").
template <class Number>
struct Across {
  int count = 0;
  std::ptrdiff_t ahead = 0;             // to the next site in mu
  std::array<const Number*, 3> side{};  // the links of each direction across
  std::array<std::ptrdiff_t, 3> up{};   // to the next site in it

  Across(const MatrixSpace& space, const LinkFieldsOf<Number>& links, int mu) : ahead(space.stride(mu)) {
    for (int nu = 0; nu < space.dims(); ++nu) {
      if (nu == mu) continue;
      side[static_cast<std::size_t>(count)] = links[nu].data();
      up[static_cast<std::size_t>(count)] = space.stride(nu);
      ++count;
    }
  }

  // The two staples of the field V in the nu-th direction across,
  //
  //   U_nu(x) V(x + nu) adjoint(U_nu(x + mu)) + adjoint(U_nu(x - nu)) V(x - nu) U_nu(x - nu + mu).
  template <class Sites>
  [[nodiscard]] typename Sites::Matrix staple(const Sites& sites, int nu, const Number* v) const {
    return two_staples(sites, side[nu], v, ahead, up[nu]);
  }
  // Adds the rows that staple() reads.
  void add_staple(RowsAhead<Number>& rows, int nu, const Number* v) const {
    const auto i = static_cast<std::size_t>(nu);
    for (const std::ptrdiff_t shift : {std::ptrdiff_t{0}, ahead, -up[i], ahead - up[i]}) rows.add(side[i], shift);
    for (const std::ptrdiff_t shift : {up[i], -up[i]}) rows.add(v, shift);
  }
};

}  // namespace

template <class Number>
FatLinkPaths<Number>::FatLinkPaths(const MatrixSpace& space)
    : space_(space),
      around_{Field(space), Field(space), Field(space)},
      inner_{Field(space), Field(space), Field(space)} {}

template <class Number>
void FatLinkPaths<Number>::fill_across(Field& field, int mu, int nu) {
  const int direction = nu < mu ? nu : nu + 1;
  field.fill(direction, Side::below);
  field.fill(direction, Side::above);
}

// A staple is linear in the field inside it. For each outermost direction the inner parts of all paths are therefore
// added first: the link, its staples in the other two directions, its staple in the same direction (Lepage's term), and
// staples of staples. In four directions this takes 12 staples per link instead of one for each of 18 kinds of path.
template <class Number>
void FatLinkPaths<Number>::fat(const Fields& links, int mu, const PathWeights& weights, Field& fat) {
  const Across<Number> across(space_, links, mu);
  const int count = across.count;
  const bool further = weights.five != 0 || weights.seven != 0 || weights.lepage != 0;
  if (further) make_inner(links, mu, weights);

  // Lepage's term as a staple of a staple contains, twice per direction, a path that returns on itself: for unitary
  // links, the link.
  const double own = weights.one - 2 * count * weights.lepage;
  const double outer = further ? 1 : weights.three;
  const Number* link = links[mu].data();
  Number* out = fat.data();
  std::array<const Number*, 3> inner{};
  RowsAhead<Number> rows(space_);
  rows.add(link);
  for (std::size_t nu = 0; nu < 3; ++nu) inner[nu] = further ? inner_[nu].data() : link;
  for (int nu = 0; nu < count; ++nu) across.add_staple(rows, nu, inner[static_cast<std::size_t>(nu)]);
  const auto op = [=](auto sites) {
    auto sum = sites.all(own) * sites.load(link);
    for (int nu = 0; nu < count; ++nu) sum = sum + sites.all(outer) * across.staple(sites, nu, inner[nu]);
    sites.store(out, sum);
  };
  each_site(FieldsOf<Number>{&space_}, Prefetching{op, rows});
}

template <class Number>
void FatLinkPaths<Number>::make_inner(const Fields& links, int mu, const PathWeights& weights) {
  const Across<Number> across(space_, links, mu);
  const int count = across.count;
  const bool seven = weights.seven != 0 && count == 3;
  const Number* link = links[mu].data();
  std::array<Number*, 3> around{};
  std::array<Number*, 3> inner{};
  for (std::size_t nu = 0; nu < 3; ++nu) around[nu] = around_[nu].data(), inner[nu] = inner_[nu].data();

  RowsAhead<Number> first(space_);
  for (int nu = 0; nu < count; ++nu) across.add_staple(first, nu, link);
  const auto make_around = [=](auto sites) {
    for (int nu = 0; nu < count; ++nu) sites.store(around[nu], across.staple(sites, nu, link));
  };
  each_site(FieldsOf<Number>{&space_}, Prefetching{make_around, first});

  RowsAhead<Number> second(space_);
  second.add(link);
  for (int nu = 0; nu < count; ++nu) {
    second.add(around[static_cast<std::size_t>(nu)]);
    for (int rho = 0; seven && rho < count; ++rho) {
      if (rho == nu) continue;
      fill_across(around_[static_cast<std::size_t>(rho)], mu, nu);
      across.add_staple(second, nu, around[static_cast<std::size_t>(rho)]);
    }
  }
  const auto make_sums = [=](auto sites) {
    for (int last = 0; last < count; ++last) {
      auto sum = sites.all(weights.three) * sites.load(link) + sites.all(weights.lepage) * sites.load(around[last]);
      for (int nu = 0; nu < count; ++nu) {
        if (nu == last) continue;
        sum = sum + sites.all(weights.five) * sites.load(around[nu]);
        if (seven) sum = sum + sites.all(weights.seven) * across.staple(sites, nu, around[3 - last - nu]);
      }
      sites.store(inner[last], sum);
    }
  };
  each_site(FieldsOf<Number>{&space_}, Prefetching{make_sums, second});
  for (int nu = 0; nu < count; ++nu) fill_across(inner_[static_cast<std::size_t>(nu)], mu, nu);
}

template <class Number>
void FatLinkPaths<Number>::long_links(const Fields& links, int mu, double weight, Field& long_links) {
  const Number* link = links[mu].data();
  Number* two = around_[0].data();
  Number* out = long_links.data();
  const std::ptrdiff_t ahead = space_.stride(mu);
  RowsAhead<Number> first(space_), second(space_);
  for (const std::ptrdiff_t shift : {std::ptrdiff_t{0}, ahead}) first.add(link, shift);
  const auto make_two = [=](auto sites) { sites.store(two, sites.load(link) * sites.load(link, ahead)); };
  each_site(FieldsOf<Number>{&space_}, Prefetching{make_two, first});
  around_[0].fill(mu, Side::above);
  second.add(link);
  second.add(two, ahead);
  const auto make_three = [=](auto sites) {
    sites.store(out, sites.all(weight) * (sites.load(link) * sites.load(two, ahead)));
  };
  each_site(FieldsOf<Number>{&space_}, Prefetching{make_three, second});
}

template class FatLinkPaths<double>;
template class FatLinkPaths<float>;

}  // namespace onehop::lattice::detail
