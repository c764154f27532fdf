#include "lattice/gauge/link_fields.h"

namespace onehop::lattice::detail {

namespace {

constexpr std::size_t link_numbers = 9;

}  // namespace

template <class Number>
LinkFieldsOf<Number>::LinkFieldsOf(const MatrixSpace& space) : space_(&space) {
  for (int mu = 0; mu < space.dims(); ++mu) links_.emplace_back(space);
}

template <class Number>
void LinkFieldsOf<Number>::load(std::span<const std::complex<double>> links) {
  for (std::size_t mu = 0; mu < links_.size(); ++mu)
    links_[mu].load(links.data() + mu * link_numbers, links_.size() * link_numbers);
}

template <class Number>
std::vector<std::complex<double>> LinkFieldsOf<Number>::store() const {
  std::vector<std::complex<double>> links(space_->sites() * links_.size() * link_numbers);
  for (std::size_t mu = 0; mu < links_.size(); ++mu)
    links_[mu].store(links.data() + mu * link_numbers, links_.size() * link_numbers);
  return links;
}

template <class Number>
void LinkFieldsOf<Number>::fill_ahead() {
  for (Field& field : links_) {
    for (int direction = 0; direction < dims(); ++direction) field.fill(direction, Side::above);
  }
}

template <class Number>
void LinkFieldsOf<Number>::fill_all() {
  for (Field& field : links_) {
    for (int direction = 0; direction < dims(); ++direction) {
      field.fill(direction, Side::below);
      field.fill(direction, Side::above);
    }
  }
}

template <class Number>
std::array<const Number*, 4> LinkFieldsOf<Number>::data() const {
  std::array<const Number*, 4> found{};
  for (std::size_t mu = 0; mu < links_.size(); ++mu) found[mu] = links_[mu].data();
  return found;
}

template class LinkFieldsOf<double>;
template class LinkFieldsOf<float>;

}  // namespace onehop::lattice::detail
