#pragma once

/// \file
/// id_generator: a concept for code that needs ids and does not care where they come from. A
/// sequence, a handle of a sequence and the small generators below satisfy it. any_id_generator
/// holds any of them, for classes that get theirs at run time.

#include <holdfast/uuid.hpp>
#include <holdfast/version.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// A type whose `next()` returns a new id, different from all others.
template <class T>
concept id_generator = requires(T& ids) {
  typename T::id_type;
  { ids.next() } -> std::same_as<typename T::id_type>;
};

/// Counts in this process and starts again with the next one: for tests of code that takes an
/// id_generator.
/// Thread-safety: every function may be called from any thread. After fork both processes continue
/// with the same id.
class local_ids {
 public:
  using id_type = std::int64_t;

  explicit local_ids(std::int64_t start = 1) noexcept : next_(start) {}
  /// Continues where `other` is. Not while other threads use it.
  local_ids(local_ids&& other) noexcept : next_(other.next_.load(std::memory_order_relaxed)) {}
  local_ids& operator=(local_ids&&) = delete;
  ~local_ids() = default;

  std::int64_t next() noexcept { return next_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> next_;
};

/// UUIDs of version 4: random, in no order, without a store.
/// Thread-safety: every function may be called from any thread.
class uuid_v4_ids {
 public:
  using id_type = uuid;

  /// As uuid::v4.
  uuid next() { return uuid::v4(); }
};

/// UUIDs of version 7: ordered by time, without a store. Each is larger than all that were made
/// before in this process, even if the clock goes back.
/// Thread-safety: every function may be called from any thread. After fork the two processes make
/// different ids.
class uuid_v7_ids {
 public:
  using id_type = uuid;

  /// As uuid::v7.
  uuid next() { return uuid::v7(); }
};

/// Holds any generator of ids of type T: a class can take its generator at run time, from its
/// configuration or from a test, without being a template.
///
///     class accounts {
///       holdfast::any_id_generator<std::int64_t> ids_;
///      public:
///       explicit accounts(holdfast::any_id_generator<std::int64_t> ids) : ids_(std::move(ids)) {}
///     };
///     accounts real(db.sequence("account.id"));
///     accounts tested(holdfast::local_ids(1000));
///
/// It can be moved, not copied. One that was moved from can only be destroyed or assigned to.
/// Thread-safety: that of the generator that it holds.
template <class T>
class any_id_generator {
 public:
  using id_type = T;

  /// Holds a generator of its own: it is moved in.
  template <id_generator Generator>
    requires(!std::same_as<Generator, any_id_generator<T>> &&
             std::same_as<typename Generator::id_type, T>)
  any_id_generator(Generator generator)  // NOLINT(google-explicit-constructor)
      : generator_(std::make_unique<holder<Generator>>(std::move(generator))) {}

  /// Shares a generator, which must not be null.
  template <id_generator Generator>
    requires std::same_as<typename Generator::id_type, T>
  any_id_generator(std::shared_ptr<Generator> generator)  // NOLINT(google-explicit-constructor)
      : generator_(std::make_unique<shared_holder<Generator>>(std::move(generator))) {}

  /// A new id. Throws what the generator throws.
  T next() { return generator_->next(); }

 private:
  struct any_holder {
    any_holder() = default;
    any_holder(const any_holder&) = delete;
    any_holder& operator=(const any_holder&) = delete;
    virtual ~any_holder() = default;
    virtual T next() = 0;
  };
  template <class Generator>
  struct holder final : any_holder {
    explicit holder(Generator generator) : held(std::move(generator)) {}
    T next() override { return held.next(); }
    Generator held;
  };
  template <class Generator>
  struct shared_holder final : any_holder {
    explicit shared_holder(std::shared_ptr<Generator> generator) : held(std::move(generator)) {}
    T next() override { return held->next(); }
    const std::shared_ptr<Generator> held;
  };

  std::unique_ptr<any_holder> generator_;
};

}  // namespace HOLDFAST_NAMESPACE
