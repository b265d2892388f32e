#pragma once

#include <holdfast/store.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A store in front of another that does as a test wants, before and after each operation of the
/// one behind: look on, call back, throw. Thread-safety: that of the hooks and of the store behind.
class faulty_store final : public store {
 public:
  enum class operation { put, find, find_all, erase, expire, count };
  /// Told what it is, and what is put.
  using hook = std::function<void(operation, std::span<const entry>)>;

  explicit faulty_store(std::shared_ptr<store> behind) : behind_(std::move(behind)) {}

  hook before{};                             ///< what it throws: nothing happened
  hook after{};                              ///< what it throws: it happened
  std::function<void()> asked_for_health{};  ///< may hang
  bool waiting = true;                       ///< what waits() says
  bool available = true;                     ///< what health() says, unless the store behind is not
  std::uint64_t unreadable = 0;  ///< what health() says, beside those of the store behind

  void put(std::span<const entry> entries) override {
    around(operation::put, entries, [&] {
      behind_->put(entries);
      return 0;
    });
  }
  using store::put;
  std::optional<entry> find(place where, std::string_view key) override {
    return around(operation::find, {}, [&] { return behind_->find(where, key); });
  }
  entry_page find_all(place where, std::size_t limit, std::string_view from) override {
    return around(operation::find_all, {}, [&] { return behind_->find_all(where, limit, from); });
  }
  bool erase(place where, std::string_view key, timestamp as_of) override {
    return around(operation::erase, {}, [&] { return behind_->erase(where, key, as_of); });
  }
  std::size_t expire(timestamp until, std::size_t limit) override {
    return around(operation::expire, {}, [&] { return behind_->expire(until, limit); });
  }
  std::uint64_t count(place where) override {
    return around(operation::count, {}, [&] { return behind_->count(where); });
  }
  store_health health() noexcept override {
    if (asked_for_health) asked_for_health();
    auto health = behind_->health();
    health.available = health.available && available;
    health.unreadable += unreadable;
    return health;
  }
  [[nodiscard]] bool waits() const noexcept override { return waiting; }

 private:
  template <class Work>
  auto around(operation what, std::span<const entry> entries, Work work) -> decltype(work()) {
    if (before) before(what, entries);
    auto result = work();
    if (after) after(what, entries);
    return result;
  }

  std::shared_ptr<store> behind_;
};

}  // namespace holdfast::test
