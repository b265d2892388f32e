#pragma once

/// \file
/// What a call for many things gives: an answer for each of them.

#include <holdfast/clock.hpp>
#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/gather.hpp>
#include <holdfast/version.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// One of many: what it was asked by, and its answer with its own provenance. A missing one has no answer: neither the upstream nor the
/// store had it. One that is there and empty (`has_value()` is false) is known not to exist.
/// Thread-safety: like a standard container.
template <class Id, class T>
class item : public answer<T> {
 public:
  item(Id id, std::optional<T> value, provenance from, bool missing)
      : answer<T>(std::move(value), std::move(from)), id_(std::move(id)), missing_(missing) {}

  [[nodiscard]] const Id& id() const noexcept { return id_; }
  [[nodiscard]] bool missing() const noexcept { return missing_; }
  [[nodiscard]] bool live() const noexcept { return !missing_ && answer<T>::live(); }
  [[nodiscard]] bool stale() const noexcept { return !missing_ && answer<T>::stale(); }

 private:
  Id id_;
  bool missing_;
};

/// The items of a call for many things: in the order in which they were asked for, or, of a list, in which the upstream gave them.
/// Thread-safety: like a standard container.
template <class Id, class T>
class gathered {
 public:
  using value_type = item<Id, T>;

  gathered(std::vector<value_type> items, provenance from, std::size_t missing)
      : items_(std::move(items)), from_(std::move(from)), missing_(missing) {}

  [[nodiscard]] const std::vector<value_type>& items() const& noexcept { return items_; }
  [[nodiscard]] std::vector<value_type>&& items() && noexcept { return std::move(items_); }
  [[nodiscard]] auto begin() const noexcept { return items_.begin(); }
  [[nodiscard]] auto end() const noexcept { return items_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] const value_type& operator[](std::size_t i) const { return items_[i]; }
  /// The first with that id; throws errc::not_found.
  [[nodiscard]] const value_type& at(const Id& id) const {
    const auto found = std::find_if(items_.begin(), items_.end(), [&](const value_type& each) { return each.id() == id; });
    if (found == items_.end()) throw error(errc::not_found, "there is no item with that id in the answer");
    return *found;
  }

  /// The upstream gave every item, in this call.
  [[nodiscard]] bool live() const noexcept {
    return from_.from == origin::live && missing_ == 0 && std::all_of(begin(), end(), [](const value_type& each) { return each.live(); });
  }
  [[nodiscard]] bool stale() const noexcept { return !live(); }
  /// `yes` when nothing is missing. Of a list served without its manifest: `unknown`.
  [[nodiscard]] completeness complete() const noexcept { return from_.complete; }
  /// How many are missing, those that the partial policy dropped included.
  [[nodiscard]] std::size_t missing() const noexcept { return missing_; }
  /// Of the oldest item that is there; without one, of the call.
  [[nodiscard]] timestamp as_of() const noexcept { return from_.as_of; }
  [[nodiscard]] const holdfast::cause& cause() const noexcept { return from_.why; }
  [[nodiscard]] const holdfast::provenance& provenance() const noexcept { return from_; }

 private:
  std::vector<value_type> items_;
  holdfast::provenance from_;
  std::size_t missing_;
};

namespace detail {

/// What became of a finished call's slices. `id_of` gives the id of a slice: by its place for those asked by id, by its value for a list.
template <class Id, class T, class Call, class IdOf>
[[nodiscard]] gathered<Id, T> gathered_from(const point_core& point, Call& call, IdOf id_of) {
  std::vector<item<Id, T>> items;
  items.reserve(call.slices.size());
  std::size_t missing = call.missing_unnamed;
  for (std::size_t i = 0; i < call.slices.size(); ++i) {
    auto& slice = call.slices[i];
    const bool lost = slice.at == slice_state::missing || slice.at == slice_state::open;
    if (lost) ++missing;
    if (lost && (call.listed || drops_missing(point))) continue;
    if (call.listed && !call.value(i)) continue;  // known to be gone: a list has no empty places
    auto id = id_of(i, call.value(i));
    items.emplace_back(std::move(id), std::move(call.value(i)), std::move(slice.call->from), lost);
  }
  return {std::move(items), std::move(call.from), missing};
}

}  // namespace detail
}  // namespace HOLDFAST_NAMESPACE
