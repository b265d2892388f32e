#pragma once

/// \file
/// Stores on top of each other, in the one order that is right:
///
///     tenants       stamps the realm, on the calling thread
///     tiered        memory in front
///     write_behind  queues; compares plaintext
///     sealed        encrypts
///     a store       SQL, or memory
///
///     auto store = holdfast::compose(db).sealed({...}).write_behind({...}).tiered({...}).tenants({...}).build();
///
/// Each part is optional. From the bottom up: a part that is put on one that must be above it does not compile.

#include <holdfast/clock.hpp>
#include <holdfast/database.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/store.hpp>
#include <holdfast/store/sealed.hpp>
#include <holdfast/store/tenants.hpp>
#include <holdfast/store/tiered.hpp>
#include <holdfast/store/write_behind.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// The parts of a composed store; what is not there is null.
struct store_parts {
  std::shared_ptr<store> base{};  ///< the one at the bottom
  std::shared_ptr<sealed_store> sealed{};
  std::shared_ptr<holdfast::write_behind> write_behind{};
  std::shared_ptr<tiered_store> tiered{};
  std::shared_ptr<tenant_store> tenants{};
};

/// All of it as one store, which owns its parts. Each part has its own numbers: `parts().sealed->numbers()`.
/// Thread-safety, exception safety: as its parts. Its destructor is theirs, from the top down: see write_behind.
class HOLDFAST_API composed_store final : public store {
 public:
  using store::put;

  /// Throws errc::invalid_argument without a base. Use `compose`, which knows the order.
  explicit composed_store(store_parts parts);
  ~composed_store() override;

  void put(std::span<const entry> entries) override;
  [[nodiscard]] std::optional<entry> find(place where, std::string_view key) override;
  [[nodiscard]] entry_page find_all(place where, std::size_t limit, std::string_view after = {}) override;
  bool erase(place where, std::string_view key, timestamp as_of) override;
  std::size_t expire(timestamp before, std::size_t limit) override;
  [[nodiscard]] std::uint64_t count(place where) override;
  [[nodiscard]] holdfast::peer peer() const noexcept override;
  [[nodiscard]] bool waits() const noexcept override;
  [[nodiscard]] store_health health() noexcept override;

  /// Those of write_behind; without it everything is written already, and there is nothing to report. The deadline is a
  /// moment of its clock.
  write_behind_report flush(std::chrono::steady_clock::time_point deadline);
  write_behind_report close(std::chrono::steady_clock::time_point deadline);

  [[nodiscard]] const store_parts& parts() const noexcept { return parts_; }

 private:
  store_parts parts_;
  store& top_;
};

/// What the parts of a composition use where their own options say nothing. `compose(db)` takes it from the database.
struct store_surroundings {
  std::shared_ptr<const holdfast::clock> clock{};  ///< of write_behind and tiered: the one of the store at the bottom
  std::shared_ptr<holdfast::executor> executor{};  ///< of write_behind and tiered; none: write_behind has a thread of its own
  std::function<std::shared_ptr<holdfast::executor>()> reads_on{};  ///< asked where there is no executor and tiered has a read_deadline
  log_sink log{};                                                   ///< of write_behind
  std::shared_ptr<metrics_sink> metrics{};                          ///< of write_behind
};

/// How far up a composition is.
enum class store_level : std::uint8_t { base, sealed, write_behind, tiered, tenants };

/// A composition up to a level. Each step takes the one before: `compose(base).sealed({...}).build()`.
/// Thread-safety: none. Exception safety: what a step throws (as the make_... function of its part) leaves nothing behind.
template <store_level Top = store_level::base>
class store_composition {
 public:
  explicit store_composition(store_parts parts, store_surroundings around = {}) : parts_(std::move(parts)), around_(std::move(around)) {}

  [[nodiscard]] store_composition<store_level::sealed> sealed(sealed_options options) && {
    static_assert(Top < store_level::sealed, "sealed goes right above the base store: nothing that is above it may come before it");
    parts_.sealed = make_sealed(top(), std::move(options));
    return store_composition<store_level::sealed>(std::move(parts_), std::move(around_));
  }
  [[nodiscard]] store_composition<store_level::write_behind> write_behind(write_behind_options options = {}) && {
    static_assert(Top < store_level::write_behind, "write_behind goes above sealed and below tiered and tenants, and only once");
    if (!options.clock) options.clock = around_.clock;
    if (!options.executor) options.executor = around_.executor;
    if (!options.log) options.log = around_.log;
    if (!options.metrics) options.metrics = around_.metrics;
    parts_.write_behind = make_write_behind(top(), std::move(options));
    return store_composition<store_level::write_behind>(std::move(parts_), std::move(around_));
  }
  [[nodiscard]] store_composition<store_level::tiered> tiered(tiered_options options = {}) && {
    static_assert(Top < store_level::tiered, "tiered goes above write_behind and below tenants, and only once");
    if (!options.clock) options.clock = around_.clock;
    if (!options.executor) options.executor = around_.executor;
    if (!options.executor && options.read_deadline.count() > 0 && around_.reads_on) options.executor = around_.reads_on();
    parts_.tiered = make_tiered_store(top(), std::move(options));
    return store_composition<store_level::tiered>(std::move(parts_), std::move(around_));
  }
  [[nodiscard]] store_composition<store_level::tenants> tenants(tenant_options options) && {
    static_assert(Top < store_level::tenants, "tenants goes above all others, and only once");
    parts_.tenants = make_tenant_store(top(), std::move(options));
    return store_composition<store_level::tenants>(std::move(parts_), std::move(around_));
  }

  [[nodiscard]] std::shared_ptr<composed_store> build() && { return std::make_shared<composed_store>(std::move(parts_)); }

 private:
  [[nodiscard]] std::shared_ptr<store> top() const {
    if constexpr (Top >= store_level::tiered) {
      if (parts_.tiered) return parts_.tiered;
    }
    if constexpr (Top >= store_level::write_behind) {
      if (parts_.write_behind) return parts_.write_behind;
    }
    if constexpr (Top >= store_level::sealed) {
      if (parts_.sealed) return parts_.sealed;
    }
    return parts_.base;
  }

  store_parts parts_;
  store_surroundings around_{};
};

/// Begins with the store at the bottom. Clocks and executors of the parts are the machine's and their own, unless they are given.
[[nodiscard]] inline store_composition<> compose(std::shared_ptr<store> base, store_surroundings around = {}) {
  return store_composition<>({.base = std::move(base)}, std::move(around));
}
/// Begins with the store on a database. The parts have the database's clock, log and metrics, and run on its executor, if it was given one,
/// except where their own options say otherwise. Throws as database::store.
[[nodiscard]] HOLDFAST_API store_composition<> compose(const database& on, store_options options = {});

}  // namespace HOLDFAST_NAMESPACE
