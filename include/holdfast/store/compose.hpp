#pragma once

/// \file
/// Puts layers on a store, in the only correct order:
///
///     tenants       adds the caller's realm, on the calling thread
///     tiered        memory in front
///     write_behind  queues writes; compares plaintext
///     sealed        encrypts
///     base store    SQL or memory
///
///     auto store = holdfast::compose(db, {.tiered = holdfast::tiered_options{},
///                                         .sealed = holdfast::sealed_options{.keys = ring}});

#include <holdfast/clock.hpp>
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
#include <optional>

namespace HOLDFAST_NAMESPACE {

class database;

/// The layers to put on a store, from the top down. Each is optional.
struct store_layers {
  std::optional<tenant_options> tenants{};
  std::optional<tiered_options> tiered{};
  std::optional<write_behind_options> write_behind{};
  std::optional<sealed_options> sealed{};
};

/// The layers of a composed store. Missing layers are null.
struct store_parts {
  /// The store at the bottom.
  std::shared_ptr<store> base{};
  std::shared_ptr<sealed_store> sealed{};
  std::shared_ptr<holdfast::write_behind> write_behind{};
  std::shared_ptr<tiered_store> tiered{};
  std::shared_ptr<tenant_store> tenants{};
};

/// A stack of layers as one store that owns them. Each layer has its own statistics, for example
/// `parts().sealed->numbers()`.
///
/// Thread-safety and exception safety: those of the layers. The destructor destroys the layers from
/// the top down; see write_behind.
class HOLDFAST_API composed_store final : public store {
 public:
  using store::put;

  /// Throws errc::invalid_argument if `parts.base` is null. Prefer `compose`, which builds the
  /// layers in their order.
  explicit composed_store(store_parts parts);
  ~composed_store() override;

  void put(std::span<const entry> entries) override;
  [[nodiscard]] std::optional<entry> find(place location, std::string_view key) override;
  [[nodiscard]] std::vector<std::optional<entry>> find_many(
      place location, std::span<const std::string> keys) override;
  [[nodiscard]] remembered_entry find_in_memory(place location, std::string_view key) override;
  [[nodiscard]] entry_page find_all(place location, std::size_t limit,
                                    std::string_view after = {}) override;
  bool erase(place location, std::string_view key, timestamp as_of) override;
  std::size_t expire(timestamp before, std::size_t limit) override;
  [[nodiscard]] std::uint64_t count(place location) override;
  [[nodiscard]] expiry_profile expiring(place location, std::span<const timestamp> times) override;
  [[nodiscard]] holdfast::peer peer() const noexcept override;
  [[nodiscard]] bool waits() const noexcept override;
  [[nodiscard]] store_health health() noexcept override;

  /// Flushes or closes the write_behind layer. The deadline is a time of that layer's clock.
  /// Without such a layer everything is already written, and the report is empty.
  write_behind_report flush(std::chrono::steady_clock::time_point deadline);
  write_behind_report close(std::chrono::steady_clock::time_point deadline);

  [[nodiscard]] const store_parts& parts() const noexcept { return parts_; }

 private:
  store_parts parts_;
  store& top_;
};

/// Defaults for layers whose own options do not set them. `compose(db)` takes them from the
/// database.
struct store_environment {
  /// For write_behind and tiered. Use the clock of the base store.
  std::shared_ptr<const holdfast::clock> clock{};
  /// For write_behind and tiered. If null, write_behind starts a thread of its own.
  std::shared_ptr<holdfast::executor> executor{};
  /// Supplies the executor for a tiered layer with a read_deadline if `executor` is null.
  std::function<std::shared_ptr<holdfast::executor>()> make_executor{};
  /// For write_behind.
  log_sink log{};
  /// For write_behind.
  std::shared_ptr<metrics_sink> metrics{};
};

/// Puts the layers on `base`. They use the system clock and executors of their own unless
/// `environment` or their options say otherwise. Throws errc::invalid_argument if `base` is null,
/// and what the make_... function of a layer throws.
[[nodiscard]] HOLDFAST_API std::shared_ptr<composed_store> compose(
    std::shared_ptr<store> base, store_layers layers, const store_environment& environment = {});
/// Puts the layers on the store of a database. They use the database's clock, log and metrics, and
/// its executor if it was given one, unless their options say otherwise. Throws also as
/// database::store.
[[nodiscard]] HOLDFAST_API std::shared_ptr<composed_store> compose(const database& db,
                                                                   store_layers layers,
                                                                   store_options options = {});

/// Returns the listing of a store, or of the store at the bottom of a composition. Null if that
/// store does not list names. The result belongs to the store.
[[nodiscard]] HOLDFAST_API name_listing* find_name_listing(store& listed) noexcept;

}  // namespace HOLDFAST_NAMESPACE
