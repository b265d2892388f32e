#pragma once

/// \file
/// Tenants: each tenant has a realm, its own part of a store. The calling thread determines the
/// tenant. Only configured tenants are served.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// The limit of a tenant's id, in bytes.
inline constexpr std::size_t max_tenant_length = 128;
inline constexpr std::size_t max_tenants = 10'000;

/// Sets the tenant of the current thread until it is destroyed; then the previous tenant is current
/// again. All tenant stores of the process read it.
///
///     holdfast::tenant_scope scope("acme");
///
/// Scopes nest and must be destroyed in reverse order. If an outer scope is destroyed first, the
/// inner ones stay in effect. A coroutine must not keep a scope across a `co_await`: its thread
/// would work for that tenant meanwhile.
///
/// To pass the tenant to another thread, call `current_tenant()` here and construct a scope from
/// the result there. Thread-safety: a scope must be destroyed on the thread that created it.
class HOLDFAST_API tenant_scope {
 public:
  /// Takes a tenant's id, or the result of `current_tenant()`; nothing means no tenant. Throws
  /// errc::invalid_argument for a blank id, errc::too_large beyond max_tenant_length, and
  /// errc::ill_formed_text if the id is not UTF-8. The store checks whether the tenant exists.
  explicit tenant_scope(std::optional<std::string> tenant);
  tenant_scope(const tenant_scope&) = delete;
  tenant_scope& operator=(const tenant_scope&) = delete;
  ~tenant_scope();

 private:
  friend HOLDFAST_API std::optional<std::string> current_tenant();
  std::optional<std::string> tenant_;
  tenant_scope* outer_;
};

/// Returns the tenant of the innermost scope of this thread, or nothing if there is no scope.
[[nodiscard]] HOLDFAST_API std::optional<std::string> current_tenant();

/// A tenant and the name of its table or schema.
struct tenant {
  std::string id;
  /// The part of the table or schema name that is specific to the tenant: letters, digits and `_`.
  /// Empty: the id, which must then consist of those characters.
  std::string place{};
};

/// How a database keeps the realms apart.
enum class tenant_strategy : std::uint8_t {
  /// One table for each tenant: `ACME_FAILOVER_STORE`.
  table_prefix,
  /// One schema (MySQL: database) for each tenant: `acme.FAILOVER_STORE`. The schema must exist.
  schema
};
/// The name of the enumerator, for example `table_prefix`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(tenant_strategy strategy) noexcept;

/// Returns the value for store_options::realms. Only configured names that are plain identifiers
/// become part of a statement. Throws errc::invalid_argument for a blank or ill-formed id, a
/// `place` that is not a plain identifier, or two tenants with the same `place`; errc::duplicate
/// for a duplicate id; errc::too_large for an id that is too long or more than max_tenants.
[[nodiscard]] HOLDFAST_API std::map<std::string, std::string, std::less<>> tenant_realms(
    const std::vector<tenant>& tenants, tenant_strategy strategy);

struct tenant_options {
  /// The ids of all tenants. Others are refused.
  std::vector<std::string> tenants{};
  /// Determines the tenant if the calling thread has no tenant_scope. Called on that thread, for
  /// each operation. Nothing or an empty string means that it does not know the tenant.
  std::function<std::optional<std::string>()> resolve{};
  /// The tenant if neither a scope nor `resolve` names one. If empty, such operations are refused.
  std::string default_tenant{};
};

/// Counters of a tenant store.
struct tenant_numbers {
  std::uint64_t unknown = 0;  ///< operations refused because the tenant is not configured
  std::uint64_t missing = 0;  ///< operations refused because no tenant was named
};

/// Adds the tenant's realm to each operation and removes it from the results: callers see no
/// realms. If an entry or a place already has a realm, it must be the tenant's own. `expire` covers
/// all realms.
///
/// Throws errc::permission if the tenant is not configured or not named, and what `resolve` and the
/// store below throw.
/// Thread-safety: every function may be called from any thread; the calling thread determines the
/// tenant.
class HOLDFAST_API tenant_store : public store {
 public:
  using store::put;

  /// Returns the tenant of the calling thread, for example to pass it to another thread. Throws as
  /// the operations do.
  [[nodiscard]] virtual std::string tenant() = 0;
  [[nodiscard]] virtual tenant_numbers numbers() const noexcept = 0;
};

/// Throws errc::invalid_argument if there are no tenants or the default tenant is not one of them,
/// and as tenant_realms for invalid ids.
[[nodiscard]] HOLDFAST_API std::shared_ptr<tenant_store> make_tenant_store(
    std::shared_ptr<store> next, tenant_options options);

}  // namespace HOLDFAST_NAMESPACE
