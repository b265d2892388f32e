#pragma once

/// \file
/// The answer to a call for many things: a list of items, each with its own provenance.

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

/// One item: its id, and its answer with its own provenance. A missing item was returned neither by
/// the upstream nor by the store. An item that is not missing but has no value does not exist.
/// Thread-safety: like a standard container.
template <class Id, class T>
class item : public answer<T> {
 public:
  item(Id id, std::optional<T> value, holdfast::provenance provenance, bool missing)
      : answer<T>(std::move(value), std::move(provenance)), id_(std::move(id)), missing_(missing) {}

  [[nodiscard]] const Id& id() const noexcept { return id_; }
  [[nodiscard]] bool missing() const noexcept { return missing_; }
  [[nodiscard]] bool live() const noexcept { return !missing_ && answer<T>::live(); }
  [[nodiscard]] bool stale() const noexcept { return !missing_ && answer<T>::stale(); }

 private:
  Id id_;
  bool missing_;
};

/// The items of an answer. For protect_each in the order of the ids, for protect_list in the order
/// in which the upstream returned them. Thread-safety: like a standard container.
template <class Id, class T>
class gathered {
 public:
  using value_type = item<Id, T>;

  gathered(std::vector<value_type> items, holdfast::provenance provenance, std::size_t missing)
      : items_(std::move(items)), provenance_(std::move(provenance)), missing_(missing) {}

  [[nodiscard]] const std::vector<value_type>& items() const& noexcept { return items_; }
  [[nodiscard]] std::vector<value_type>&& items() && noexcept { return std::move(items_); }
  [[nodiscard]] auto begin() const noexcept { return items_.begin(); }
  [[nodiscard]] auto end() const noexcept { return items_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] const value_type& operator[](std::size_t i) const { return items_[i]; }
  /// The first item with this id. Throws errc::not_found.
  [[nodiscard]] const value_type& at(const Id& id) const {
    const auto match = std::find_if(items_.begin(), items_.end(),
                                    [&](const value_type& item) { return item.id() == id; });
    if (match == items_.end()) throw error(errc::not_found, "the answer has no item with this id");
    return *match;
  }

  /// True if the upstream returned every item in this call.
  [[nodiscard]] bool live() const noexcept {
    return provenance_.origin == origin::live && missing_ == 0 &&
           std::all_of(begin(), end(), [](const value_type& item) { return item.live(); });
  }
  [[nodiscard]] bool stale() const noexcept { return !live(); }
  /// `yes` if no item is missing, `unknown` for a list without a manifest.
  [[nodiscard]] completeness complete() const noexcept { return provenance_.complete; }
  /// Number of missing items, including those that the partial policy dropped.
  [[nodiscard]] std::size_t missing() const noexcept { return missing_; }
  /// The as_of of the oldest item; without items, the start of the call.
  [[nodiscard]] timestamp as_of() const noexcept { return provenance_.as_of; }
  [[nodiscard]] const holdfast::cause& cause() const noexcept { return provenance_.cause; }
  [[nodiscard]] const holdfast::provenance& provenance() const noexcept { return provenance_; }

 private:
  std::vector<value_type> items_;
  holdfast::provenance provenance_;
  std::size_t missing_;
};

namespace detail::failover {

/// Makes the answer of a finished call. `id_of(index, value)` returns the id of a slice.
template <class Id, class T, class Call, class IdOf>
[[nodiscard]] gathered<Id, T> gathered_from(const point_core& point, Call& call, IdOf id_of) {
  std::vector<item<Id, T>> items;
  items.reserve(call.slices.size());
  std::size_t missing = call.unnamed_missing;
  for (std::size_t i = 0; i < call.slices.size(); ++i) {
    auto& slice = call.slices[i];
    const bool lost = is_missing(slice.state);
    if (lost) ++missing;
    if (lost && (call.listed || drops_missing(point))) continue;
    if (call.listed && !call.value(i)) continue;  // a list does not contain deleted items
    auto id = id_of(i, call.value(i));
    items.emplace_back(std::move(id), std::move(call.value(i)), std::move(slice.call->provenance),
                       lost);
  }
  return {std::move(items), std::move(call.provenance), missing};
}

}  // namespace detail::failover
}  // namespace HOLDFAST_NAMESPACE
