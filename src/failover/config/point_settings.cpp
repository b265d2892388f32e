#include "failover/config/point_settings.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

namespace {

/// Whether the file has a key of this section for the point or tenant `name`.
bool has_any(const settings& file_settings, std::string_view section, std::string_view name) {
  return std::ranges::any_of(known_keys(), [&](const known_key& key) {
    return key.name.starts_with(section) && file_settings.has(key.name, name);
  });
}

/// Switches an optional part of a point on if the file has any key of its section, and off if its
/// `enabled` is false.
template <class Part>
void read_presence(const settings& file_settings, std::string_view section, std::string_view name,
                   std::optional<Part>& part) {
  if (!has_any(file_settings, section, name)) return;
  const auto enabled = file_settings.get<bool>(std::string(section).append("enabled"), name);
  if (!enabled.value_or(true)) part.reset();
  else if (!part) part.emplace();
}

}  // namespace

void read_scatter(const settings& file_settings, std::string_view section, std::string_view name,
                  scatter_options& options) {
  const auto key = [&](std::string_view last) { return std::string(section).append(last); };
  file_settings.read(options.timeout, key("timeout"), name);
  const auto limit = file_settings.get<std::size_t>(key("concurrency-limit"), name);
  if (limit.value_or(0) != 0) options.parallel = *limit;
  if (!file_settings.get<bool>(key("parallel"), name).value_or(true)) options.parallel = 1;
  file_settings.read(options.partial, key("partial"), name);
  file_settings.read(options.max_slices, key("max-slices"), name);
  file_settings.read_choice(options.unlisted, key("unlisted"), name);
}

point_settings::point_settings(std::shared_ptr<const settings> file_settings,
                               const engine_options& engine)
    : settings_(std::move(file_settings)),
      scatter_(engine.scatter),
      enabled_(settings_->get<bool>("failover.enabled").value_or(true)),
      unclaimed_(settings_->names_below("failover.points")) {}

void point_settings::apply(std::string_view name, point_options& options) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto claimed = unclaimed_.find(name); claimed != unclaimed_.end())
      unclaimed_.erase(claimed);
  }
  if (settings_->names_below("failover.points").contains(name)) read_point(name, options);
  if (!enabled_) options.enabled = false;
}

void point_settings::read_point(std::string_view name, point_options& options) const {
  const auto& file = *settings_;
  file.read(options.enabled, "failover.points.*.enabled", name);
  file.read(options.domain, "failover.points.*.domain", name);
  file.read(options.expiry, "failover.points.*.expiry", name);
  file.read(options.expiry_jitter, "failover.points.*.expiry-jitter", name);
  file.read(options.serve_older, "failover.points.*.serve-older", name);
  file.read(options.soft_expiry, "failover.points.*.soft-expiry", name);
  file.read_choice(options.exception_policy, "failover.points.*.exception-policy", name);
  file.read_choice(options.key_style, "failover.points.*.key-style", name);
  file.read(options.key_generator, "failover.points.*.key-generator", name);
  file.read(options.vary, "failover.points.*.vary", name);
  file.read(options.deadline, "failover.points.*.deadline", name);
  file.read(options.soft_timeout, "failover.points.*.soft-timeout", name);
  file.read_choice(options.late, "failover.points.*.late", name);
  file.read(options.concurrency_limit, "failover.points.*.concurrency-limit", name);
  file.read(options.single_flight, "failover.points.*.single-flight", name);
  file.read(options.write_behind, "failover.points.*.write-behind", name);
  file.read(options.max_payload, "failover.points.*.max-payload", name);
  file.read(options.payload_class, "failover.points.*.payload-class", name);
  read_presence(file, "failover.points.*.retry.", name, options.retry);
  if (auto& retry = options.retry) {
    if (const auto attempts = file.get<std::size_t>("failover.points.*.retry.attempts", name))
      retry->attempts = static_cast<unsigned>(std::min<std::size_t>(*attempts, 1000));
    file.read(retry->backoff, "failover.points.*.retry.backoff", name);
    file.read(retry->max_backoff, "failover.points.*.retry.max-backoff", name);
    file.read(retry->budget, "failover.points.*.retry.budget", name);
  }
  read_presence(file, "failover.points.*.breaker.", name, options.breaker);
  if (auto& breaker = options.breaker) {
    file.read(breaker->window, "failover.points.*.breaker.window", name);
    file.read(breaker->minimum, "failover.points.*.breaker.minimum", name);
    file.read(breaker->failure_rate, "failover.points.*.breaker.failure-rate", name);
    file.read(breaker->slow, "failover.points.*.breaker.slow", name);
    file.read(breaker->slow_rate, "failover.points.*.breaker.slow-rate", name);
    file.read(breaker->open_for, "failover.points.*.breaker.open-for", name);
    file.read(breaker->probes, "failover.points.*.breaker.probes", name);
  }
  if (has_any(file, "failover.points.*.scatter.", name)) {
    scatter_options scatter = options.scatter.value_or(scatter_);
    read_scatter(file, "failover.points.*.scatter.", name, scatter);
    options.scatter = scatter;
  }
}

std::vector<std::string> point_settings::unclaimed() const {
  const std::scoped_lock lock(mutex_);
  return {unclaimed_.begin(), unclaimed_.end()};
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
