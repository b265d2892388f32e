#pragma once

/// \file
/// Tenants: each has a realm, its own part of a store. Who is asking is found out on the calling thread; only tenants that were configured
/// are served.

#include <holdfast/database.hpp>
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

inline constexpr std::size_t max_tenant_length = 128;  ///< bytes of a tenant's id
inline constexpr std::size_t max_tenants = 10'000;

/// Says for whom this thread works, until it goes; then it is again as it was before. Scopes nest, and are left in the order in which they
/// were entered, reversed; one that is left earlier leaves those within it as they are. A coroutine must not keep one over a `co_await`: until
/// it goes on, its thread would work for that tenant. The tenant is kept in a variable of the thread, which every tenant store of the process looks at.
///
///     holdfast::tenant_scope scope("acme");
///
/// To hand work to another thread: take `current_tenant()` on this one, and make a scope of it on the other.
/// Thread-safety: it belongs to the thread that made it, and must be destroyed there.
class HOLDFAST_API tenant_scope {
 public:
  /// A tenant's id; or what `current_tenant()` returned elsewhere, which may be nothing: then nobody is said here either.
  /// Throws errc::invalid_argument for an id that is blank, errc::too_large beyond max_tenant_length, errc::ill_formed_text when it is no
  /// UTF-8. Whether there is such a tenant is the store's business.
  explicit tenant_scope(std::optional<std::string> tenant);
  tenant_scope(const tenant_scope&) = delete;
  tenant_scope& operator=(const tenant_scope&) = delete;
  ~tenant_scope();

 private:
  friend HOLDFAST_API std::optional<std::string> current_tenant();
  std::optional<std::string> tenant_;
  tenant_scope* before_;
};

/// Whom the innermost scope of this thread names; nothing without one.
[[nodiscard]] HOLDFAST_API std::optional<std::string> current_tenant();

/// A tenant and where its entries are.
struct tenant {
  std::string id;
  /// What its table or schema is called: letters, digits and `_`. Empty: the id itself, if it consists of those.
  std::string place{};
};

/// How the parts of a store are kept apart on a database.
enum class tenant_strategy : std::uint8_t {
  table_prefix,  ///< `ACME_FAILOVER_STORE`: a table for each
  schema         ///< `acme.FAILOVER_STORE`: a schema (MySQL: a database) for each; it must be there
};

/// For store_options::realms. Only what was configured becomes part of a statement, and only if it is a plain name.
/// Throws errc::invalid_argument for a blank or ill-formed id, a place that is no plain name, and two tenants in one place; errc::duplicate for
/// an id that is there twice; errc::too_large for one that is too long, or more than max_tenants.
[[nodiscard]] HOLDFAST_API std::map<std::string, std::string, std::less<>> tenant_realms(const std::vector<tenant>& tenants,
                                                                                         tenant_strategy strategy);

struct tenant_options {
  std::vector<std::string> tenants{};  ///< the ids that there are; any other is refused
  /// Asked where no tenant_scope is: on the calling thread, for each operation. Nothing, or an empty text, means that it does not know.
  std::function<std::optional<std::string>()> resolve{};
  std::string default_tenant{};  ///< whose entries they are when neither a scope nor the resolver says; without it that is refused
};

/// What a tenant store did so far.
struct tenant_numbers {
  std::uint64_t unknown = 0;  ///< operations refused because there is no such tenant
  std::uint64_t missing = 0;  ///< operations refused because nobody said which
};

/// Stamps the tenant's realm on what goes down, and takes it off what comes back: above it there are no realms. An entry or a place that has
/// a realm already must have the tenant's own. `expire` is not one tenant's: it covers every realm.
/// Throws errc::permission where there is no such tenant, or nobody says which; and what the resolver and the store below throw.
/// Thread-safety: every function may be called from any thread; the tenant is that of the calling one.
class HOLDFAST_API tenant_store : public store {
 public:
  using store::put;

  /// Who is asking on this thread: to be taken along to another. Throws as the operations.
  [[nodiscard]] virtual std::string tenant() = 0;
  [[nodiscard]] virtual tenant_numbers numbers() const noexcept = 0;
};

/// Throws errc::invalid_argument when there is no tenant, or the default one is not among them; and as tenant_realms for ids that cannot be.
[[nodiscard]] HOLDFAST_API std::shared_ptr<tenant_store> make_tenant_store(std::shared_ptr<store> next, tenant_options options);

}  // namespace HOLDFAST_NAMESPACE
