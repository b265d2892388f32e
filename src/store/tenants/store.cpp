#include <holdfast/store/tenants.hpp>

#include "base/utf8.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace detail::store {

namespace {

/// The innermost scope of the thread. The scopes form a linked list, so nothing is allocated.
thread_local tenant_scope* innermost_scope = nullptr;

/// PostgreSQL truncates a table name to 63 bytes without an error: `<place>_FAILOVER_STORE` must
/// fit.
constexpr std::size_t max_place_length = 48;

using tenant_ids = std::set<std::string, std::less<>>;

void check_tenant_id(std::string_view id) {
  const auto fail = [](errc code, const std::string& message) {
    throw error(code, message, {.path = "tenant"});
  };
  if (id.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos)
    fail(errc::invalid_argument, "the id of the tenant is blank");
  if (id.size() > max_tenant_length)
    fail(errc::too_large, "the id of the tenant is longer than 128 bytes");
  if (!detail::is_utf8(id))
    fail(errc::ill_formed_text, "the id of the tenant is not well-formed UTF-8");
  if (id.find('\0') != std::string_view::npos)
    fail(errc::invalid_argument, "the id of the tenant contains a NUL character");
}

tenant_ids checked(const std::vector<std::string>& ids) {
  if (ids.size() > max_tenants)
    throw error(errc::too_large, "there are more than 10,000 tenants", {.path = "tenants"});
  tenant_ids result;
  for (const auto& id : ids) {
    check_tenant_id(id);
    if (!result.insert(id).second)
      throw error(errc::duplicate, "the tenant '" + id + "' is listed twice", {.path = "tenants"});
  }
  return result;
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

class realm_store final : public tenant_store {
 public:
  realm_store(std::shared_ptr<holdfast::store> next, tenant_options options)
      : next_(std::move(next)),
        ids_(checked(options.tenants)),
        resolve_(std::move(options.resolve)),
        default_id_(std::move(options.default_tenant)) {
    if (!next_) throw error(errc::invalid_argument, "there is no store for the tenants");
    if (ids_.empty())
      throw error(errc::invalid_argument, "there are no tenants; list those that may use the store",
                  {.path = "tenants"});
    if (!default_id_.empty() && !ids_.contains(default_id_)) {
      throw error(errc::invalid_argument,
                  "the default tenant is not one of the tenants; add it to them",
                  {.path = "default_tenant"});
    }
  }

  std::string tenant() override { return std::string(current_id()); }

  void put(std::span<const entry> entries) override {
    const auto id = current_id();
    std::vector<entry> with_realm(entries.begin(), entries.end());
    for (auto& e : with_realm) {
      check_realm(id, e.realm);
      e.realm = id;
    }
    next_->put(with_realm);
  }

  std::optional<entry> find(place location, std::string_view key) override {
    auto e = next_->find(in_realm(location), key);
    if (e) e->realm = location.realm;
    return e;
  }

  remembered_entry find_in_memory(place location, std::string_view key) override {
    auto remembered = next_->find_in_memory(in_realm(location), key);
    if (remembered.entry) remembered.entry->realm = location.realm;
    return remembered;
  }

  std::vector<std::optional<entry>> find_many(place location,
                                              std::span<const std::string> keys) override {
    auto entries = next_->find_many(in_realm(location), keys);
    for (auto& e : entries) {
      if (e) e->realm = location.realm;
    }
    return entries;
  }

  entry_page find_all(place location, std::size_t limit, std::string_view after) override {
    auto page = next_->find_all(in_realm(location), limit, after);
    for (auto& e : page.entries) e.realm = location.realm;
    return page;
  }

  bool erase(place location, std::string_view key, timestamp as_of) override {
    return next_->erase(in_realm(location), key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    return next_->expire(before, limit);
  }
  std::uint64_t count(place location) override { return next_->count(in_realm(location)); }
  expiry_profile expiring(place location, std::span<const timestamp> times) override {
    return next_->expiring(in_realm(location), times);
  }
  [[nodiscard]] holdfast::peer peer() const noexcept override { return next_->peer(); }
  [[nodiscard]] bool waits() const noexcept override { return next_->waits(); }
  store_health health() noexcept override { return next_->health(); }

  tenant_numbers numbers() const noexcept override {
    return {.unknown = unknown_.load(), .missing = missing_.load()};
  }

 private:
  /// Returns the tenant of the calling thread, as a view into the configured ids.
  std::string_view current_id() {
    std::optional<std::string> id = current_tenant();
    if (!id && resolve_) {
      id = resolve_();
      if (id && id->empty()) id.reset();
    }
    if (!id && !default_id_.empty()) return *ids_.find(default_id_);
    if (!id) {
      missing_.fetch_add(1, std::memory_order_relaxed);
      throw error(errc::permission,
                  "no tenant is set for this call; enter a tenant_scope, or configure a resolver "
                  "or a default tenant",
                  {.path = "tenant"});
    }
    const auto it = ids_.find(*id);
    if (it == ids_.end()) {
      unknown_.fetch_add(1, std::memory_order_relaxed);
      // The message does not contain the id, which comes from outside.
      throw error(errc::permission,
                  "there is no such tenant; configure those that may use the store",
                  {.path = "tenant"});
    }
    return *it;
  }

  static void check_realm(std::string_view id, std::string_view realm) {
    if (!realm.empty() && realm != id) {
      throw error(errc::permission, "the entry is in the realm of another tenant than the caller's",
                  {.path = "realm"});
    }
  }

  place in_realm(place location) {
    const auto id = current_id();
    check_realm(id, location.realm);
    return {location.name, id};
  }

  std::shared_ptr<holdfast::store> next_;
  tenant_ids ids_;
  std::function<std::optional<std::string>()> resolve_;
  std::string default_id_;
  std::atomic<std::uint64_t> unknown_{0};
  std::atomic<std::uint64_t> missing_{0};
};

}  // namespace

}  // namespace detail::store

using detail::store::innermost_scope;

tenant_scope::tenant_scope(std::optional<std::string> tenant)
    : tenant_(std::move(tenant)), outer_(innermost_scope) {
  if (tenant_) detail::store::check_tenant_id(*tenant_);
  innermost_scope = this;
}

tenant_scope::~tenant_scope() {
  // Normally the first of the list. A scope of another thread is not found and changes nothing.
  for (tenant_scope** link = &innermost_scope; *link != nullptr; link = &(*link)->outer_) {
    if (*link != this) continue;
    *link = outer_;
    return;
  }
}

std::optional<std::string> current_tenant() {
  return innermost_scope != nullptr ? innermost_scope->tenant_ : std::nullopt;
}

std::map<std::string, std::string, std::less<>> tenant_realms(const std::vector<tenant>& tenants,
                                                              tenant_strategy strategy) {
  using namespace detail::store;
  std::vector<std::string> ids;
  ids.reserve(tenants.size());
  for (const auto& t : tenants) ids.push_back(t.id);
  (void)checked(ids);
  const auto fail = [](errc code, const std::string& message) {
    throw error(code, message, {.path = "tenants"});
  };
  std::map<std::string, std::string, std::less<>> realms;
  std::set<std::string> places;  // in lower case, since some databases ignore case
  for (const auto& [id, place] : tenants) {
    const std::string& name = place.empty() ? id : place;
    if (!is_plain_name(name))
      fail(errc::invalid_argument,
           "the tenant '" + id +
               "' needs a place of letters, digits and underscores: its id cannot be part of a "
               "table name");
    if (name.size() > max_place_length)
      fail(errc::too_large,
           "the place of the tenant '" + id +
               "' is longer than 48 characters, so its table would share a name with others");
    if (!places.insert(in_lower_case(name)).second)
      fail(errc::invalid_argument, "the tenant '" + id +
                                       "' has the same place as another tenant; give each tenant "
                                       "its own place");
    realms.emplace(id, name + (strategy == tenant_strategy::schema ? "." : "_"));
  }
  return realms;
}

std::shared_ptr<tenant_store> make_tenant_store(std::shared_ptr<store> next,
                                                tenant_options options) {
  return std::make_shared<detail::store::realm_store>(std::move(next), std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
