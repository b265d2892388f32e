#include "failover/config_plan.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::config {

namespace {

bool any_of(const settings& from, std::string_view section, std::string_view of) {
  return std::ranges::any_of(known_keys(),
                             [&](const known_key& each) { return each.name.starts_with(section) && from.has(each.name, of); });
}

/// Whether a part that is off unless somebody asks for it is asked for: by its `enabled`, or by any other key of it.
template <class Part>
void read_part(const settings& from, std::string_view section, std::string_view of, std::optional<Part>& to) {
  if (!any_of(from, section, of)) return;
  if (!from.flag(std::string(section).append("enabled"), of).value_or(true)) to.reset();
  else if (!to) to.emplace();
}

}  // namespace

void read_scatter(const settings& from, std::string_view section, std::string_view of, scatter_options& to) {
  const auto key = [&](std::string_view name) { return std::string(section).append(name); };
  set(to.timeout, from.duration(key("timeout"), of));
  if (const auto limit = from.count(key("concurrency-limit"), of); limit && *limit != 0) to.parallel = *limit;
  if (!from.flag(key("parallel"), of).value_or(true)) to.parallel = 1;
  set(to.partial, from.partial(key("partial"), of));
  set(to.max_slices, from.count(key("max-slices"), of));
  set(to.unlisted, from.choice<unlisted>(key("unlisted"), of));
}

point_settings::point_settings(std::shared_ptr<const settings> from, const engine_options& engine)
    : from_(std::move(from)),
      scatter_(engine.scatter),
      enabled_(from_->flag("failover.enabled").value_or(true)),
      unclaimed_(from_->names_below("failover.points")) {}

void point_settings::apply(std::string_view name, point_options& options) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = unclaimed_.find(name); found != unclaimed_.end()) unclaimed_.erase(found);
  }
  const auto& from = *from_;
  if (from.names_below("failover.points").contains(name)) {
    set(options.enabled, from.flag("failover.points.*.enabled", name));
    set(options.domain, from.text("failover.points.*.domain", name));
    set(options.expiry, from.expiry("failover.points.*.expiry", name));
    set(options.soft_expiry, from.duration("failover.points.*.soft-expiry", name));
    set(options.exception_policy, from.choice<exception_policy>("failover.points.*.exception-policy", name));
    set(options.key_style, from.choice<key::style>("failover.points.*.key-style", name));
    set(options.key_generator, from.text("failover.points.*.key-generator", name));
    if (from.has("failover.points.*.vary", name)) options.vary = from.names("failover.points.*.vary", name);
    set(options.deadline, from.duration("failover.points.*.deadline", name));
    set(options.late, from.choice<late_call>("failover.points.*.late", name));
    set(options.concurrency_limit, from.count("failover.points.*.concurrency-limit", name));
    set(options.single_flight, from.flag("failover.points.*.single-flight", name));
    set(options.write_behind, from.flag("failover.points.*.write-behind", name));
    set(options.max_payload, from.count("failover.points.*.max-payload", name));
    set(options.payload_class, from.text("failover.points.*.payload-class", name));
    read_part(from, "failover.points.*.retry.", name, options.retry);
    if (auto& retry = options.retry) {
      if (const auto attempts = from.count("failover.points.*.retry.attempts", name))
        retry->attempts = static_cast<unsigned>(std::min<std::size_t>(*attempts, 1000));
      set(retry->backoff, from.duration("failover.points.*.retry.backoff", name));
      set(retry->max_backoff, from.duration("failover.points.*.retry.max-backoff", name));
      set(retry->budget, from.rate("failover.points.*.retry.budget", name));
    }
    read_part(from, "failover.points.*.breaker.", name, options.breaker);
    if (auto& breaker = options.breaker) {
      set(breaker->window, from.count("failover.points.*.breaker.window", name));
      set(breaker->minimum, from.count("failover.points.*.breaker.minimum", name));
      set(breaker->failure_rate, from.rate("failover.points.*.breaker.failure-rate", name));
      set(breaker->slow, from.duration("failover.points.*.breaker.slow", name));
      set(breaker->slow_rate, from.rate("failover.points.*.breaker.slow-rate", name));
      set(breaker->open_for, from.duration("failover.points.*.breaker.open-for", name));
      set(breaker->probes, from.count("failover.points.*.breaker.probes", name));
    }
    if (any_of(from, "failover.points.*.scatter.", name)) {
      scatter_options scatter = options.scatter.value_or(scatter_);
      read_scatter(from, "failover.points.*.scatter.", name, scatter);
      options.scatter = scatter;
    }
  }
  if (!enabled_) options.enabled = false;
}

std::vector<std::string> point_settings::unclaimed() const {
  const std::scoped_lock lock(mutex_);
  return {unclaimed_.begin(), unclaimed_.end()};
}

}  // namespace HOLDFAST_NAMESPACE::config
