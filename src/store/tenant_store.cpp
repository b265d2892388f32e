#include <holdfast/store/tenants.hpp>

#include "base/utf8.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

/// The innermost scope of each thread. The scopes themselves are the list: nothing is allocated, nothing is left behind.
thread_local tenant_scope* innermost = nullptr;

void check_tenant_id(std::string_view id) {
  const auto fail = [](errc code, const std::string& why) { throw error(code, why, {.path = "tenant"}); };
  if (id.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos) fail(errc::invalid_argument, "the id of the tenant is blank");
  if (id.size() > max_tenant_length) fail(errc::too_large, "the id of the tenant is longer than 128 bytes");
  if (!is_utf8(id)) fail(errc::ill_formed_text, "the id of the tenant is not well-formed UTF-8");
  if (id.find('\0') != std::string_view::npos) fail(errc::invalid_argument, "the id of the tenant contains a NUL character");
}

/// PostgreSQL cuts the name of a table off after 63 bytes, in silence: `<place>_FAILOVER_STORE` must fit.
constexpr std::size_t max_place = 48;

using registry = std::set<std::string, std::less<>>;

registry checked(const std::vector<std::string>& ids) {
  if (ids.size() > max_tenants) throw error(errc::too_large, "there are more than 10,000 tenants", {.path = "tenants"});
  registry known;
  for (const auto& id : ids) {
    check_tenant_id(id);
    if (!known.insert(id).second) throw error(errc::duplicate, "the tenant '" + id + "' is there twice", {.path = "tenants"});
  }
  return known;
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

class realm_store final : public tenant_store {
 public:
  realm_store(std::shared_ptr<store> next, tenant_options options)
      : next_(std::move(next)),
        known_(checked(options.tenants)),
        resolve_(std::move(options.resolve)),
        default_(std::move(options.default_tenant)) {
    if (!next_) throw error(errc::invalid_argument, "there is no store for the tenants");
    if (known_.empty()) throw error(errc::invalid_argument, "there are no tenants; name those that may use the store", {.path = "tenants"});
    if (!default_.empty() && !known_.contains(default_)) {
      throw error(errc::invalid_argument, "the default tenant is not one of the tenants; add it to them", {.path = "default_tenant"});
    }
  }

  std::string tenant() override { return std::string(asking()); }

  void put(std::span<const entry> entries) override {
    const auto who = asking();
    std::vector<entry> stamped(entries.begin(), entries.end());
    for (auto& each : stamped) {
      must_be(who, each.realm);
      each.realm = who;
    }
    next_->put(stamped);
  }

  std::optional<entry> find(place where, std::string_view key) override {
    auto found = next_->find(in_realm(where), key);
    if (found) found->realm = where.realm;
    return found;
  }

  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    auto page = next_->find_all(in_realm(where), limit, after);
    for (auto& each : page.entries) each.realm = where.realm;
    return page;
  }

  bool erase(place where, std::string_view key, timestamp as_of) override { return next_->erase(in_realm(where), key, as_of); }
  std::size_t expire(timestamp before, std::size_t limit) override { return next_->expire(before, limit); }
  std::uint64_t count(place where) override { return next_->count(in_realm(where)); }
  [[nodiscard]] holdfast::peer peer() const noexcept override { return next_->peer(); }
  [[nodiscard]] bool waits() const noexcept override { return next_->waits(); }
  store_health health() noexcept override { return next_->health(); }

  tenant_numbers numbers() const noexcept override { return {.unknown = unknown_.load(), .missing = missing_.load()}; }

 private:
  /// The tenant's id as it was configured: it lives as long as the store, and nothing of what was asked for is kept.
  std::string_view asking() {
    std::optional<std::string> said = current_tenant();
    if (!said && resolve_) {
      said = resolve_();
      if (said && said->empty()) said.reset();
    }
    if (!said && !default_.empty()) return *known_.find(default_);
    if (!said) {
      missing_.fetch_add(1, std::memory_order_relaxed);
      throw error(errc::permission, "nobody said which tenant is asking; enter a tenant_scope, or configure a resolver or a default tenant",
                  {.path = "tenant"});
    }
    const auto found = known_.find(*said);
    if (found == known_.end()) {
      unknown_.fetch_add(1, std::memory_order_relaxed);
      // Its id is text from outside, and stays out of the message.
      throw error(errc::permission, "there is no such tenant; configure those that may use the store", {.path = "tenant"});
    }
    return *found;
  }

  static void must_be(std::string_view who, std::string_view realm) {
    if (!realm.empty() && realm != who) {
      throw error(errc::permission, "the entry is in the realm of another tenant than the one that is asking", {.path = "realm"});
    }
  }

  place in_realm(place where) {
    const auto who = asking();
    must_be(who, where.realm);
    return {where.name, who};
  }

  std::shared_ptr<store> next_;
  registry known_;
  std::function<std::optional<std::string>()> resolve_;
  std::string default_;
  std::atomic<std::uint64_t> unknown_{0};
  std::atomic<std::uint64_t> missing_{0};
};

}  // namespace

tenant_scope::tenant_scope(std::optional<std::string> tenant) : tenant_(std::move(tenant)), before_(innermost) {
  if (tenant_) check_tenant_id(*tenant_);
  innermost = this;
}
tenant_scope::~tenant_scope() {
  // Where it is in the list, which should be first. Of another thread's list nothing is known here, and nothing changed.
  for (tenant_scope** at = &innermost; *at != nullptr; at = &(*at)->before_) {
    if (*at != this) continue;
    *at = before_;
    return;
  }
}

std::optional<std::string> current_tenant() { return innermost != nullptr ? innermost->tenant_ : std::nullopt; }

std::map<std::string, std::string, std::less<>> tenant_realms(const std::vector<tenant>& tenants, tenant_strategy strategy) {
  std::vector<std::string> ids;
  ids.reserve(tenants.size());
  for (const auto& each : tenants) ids.push_back(each.id);
  (void)checked(ids);
  std::map<std::string, std::string, std::less<>> realms;
  std::set<std::string> taken;  // without case: so some databases compare names
  for (const auto& [id, place] : tenants) {
    const std::string& name = place.empty() ? id : place;
    if (!is_plain_name(name)) {
      throw error(errc::invalid_argument,
                  "the tenant '" + id + "' needs a place of letters, digits and underscores: its own id cannot be part of a table's name",
                  {.path = "tenants"});
    }
    if (name.size() > max_place) {
      throw error(errc::too_large,
                  "the place of the tenant '" + id + "' is longer than 48 characters, so that its table would share a name with others",
                  {.path = "tenants"});
    }
    std::string folded(name);
    std::ranges::transform(folded, folded.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    if (!taken.insert(std::move(folded)).second) {
      throw error(errc::invalid_argument, "the tenant '" + id + "' is in the same place as another; give each a place of its own",
                  {.path = "tenants"});
    }
    realms.emplace(id, name + (strategy == tenant_strategy::schema ? "." : "_"));
  }
  return realms;
}

std::shared_ptr<tenant_store> make_tenant_store(std::shared_ptr<store> next, tenant_options options) {
  return std::make_shared<realm_store>(std::move(next), std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
