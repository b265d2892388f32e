#pragma once

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Two rules of the queue. They are virtual only for a test that replaces them by wrong ones, to
/// show that the model test detects the fault.
class queue_rules {
 public:
  queue_rules() = default;
  queue_rules(const queue_rules&) = delete;
  queue_rules& operator=(const queue_rules&) = delete;
  virtual ~queue_rules() = default;

  /// Whether the store would replace `stored` by `incoming`.
  [[nodiscard]] virtual bool replaces(const entry& incoming, const entry& stored,
                                      timestamp horizon) const noexcept {
    return incoming.as_of >= stored.as_of || stored.as_of > horizon;
  }
  /// Whether reads see operations in flight.
  [[nodiscard]] virtual bool reads_in_flight() const noexcept { return true; }
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
