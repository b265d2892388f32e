#include "failover/point_core.hpp"

#include "base/duration_limit.hpp"
#include "failover/scatter/manifest.hpp"
#include "failover/type_name.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

payload_allowlist allowlist_of(const point_type& type, const std::string& written_class) {
  payload_allowlist allowed = type.allowed;
  allowed.allow_exactly(written_class);
  return allowed;
}

scatter_options scatter_of(const engine_core& engine, const point_options& options) {
  auto scatter = options.scatter.value_or(engine.options.scatter);
  scatter.timeout = limit_duration(scatter.timeout);
  return scatter;
}

/// A random number from 0 to 1.
double random_fraction() {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return std::generate_canonical<double, 32>(generator);
}

call_mode mode_for(const point_options& options) {
  if (!options.enabled) return call_mode::bypass;
  return options.deadline ? call_mode::on_executor : call_mode::on_caller;
}

}  // namespace

std::string manifest_name_of(std::string_view point_name, const point_type& type) {
  return type.listed ? std::string(point_name).append(manifest_suffix) : std::string();
}

point_core::point_core(engine_core& owner, std::string point_name, point_options checked_options,
                       point_type described_type, holdfast::key::failover_keys point_keys,
                       std::string written_class)
    : engine(owner),
      name(std::move(point_name)),
      options(std::move(checked_options)),
      type(std::move(described_type)),
      keys(std::move(point_keys)),
      effective_name(keys.effective_name()),
      payload_class(std::move(written_class)),
      manifest_name(manifest_name_of(name, type)),
      allowed(allowlist_of(type, payload_class)),
      name_hash(std::hash<std::string>{}(effective_name)),
      policy(options.exception_policy.value_or(owner.options.exception_policy)),
      max_payload(options.max_payload != 0 ? options.max_payload
                                           : owner.options.storage.max_payload),
      scatter(scatter_of(owner, options)),
      write_store(options.write_behind.value_or(true) ? owner.front_store : owner.base_store),
      guarded(options.breaker || options.concurrency_limit != 0),
      deadline(limit_duration(options.deadline.value_or(std::chrono::microseconds::zero()))),
      soft_expiry(options.soft_expiry.value_or(std::chrono::microseconds::zero())),
      timed(guarded || options.deadline || options.single_flight || owner.options.metrics ||
            owner.options.insight.on_decision),
      mode(mode_for(options)),
      limit(options.concurrency_limit) {
  if (options.breaker) breaker = std::make_unique<detail::breaker>(*options.breaker);
  if (options.retry && options.retry->attempts > 1)
    retry = std::make_unique<retry_plan>(*options.retry, std::random_device{}());
  if (owner.options.insight.on_decision || owner.options.insight.coverage)
    insight = std::make_unique<point_insight>();
  if (owner.options.metrics) {
    const auto now = owner.clock->now();
    const auto expiry_seconds =
        options.expiry.name().empty()
            ? std::chrono::duration<double>(options.expiry.after(now) - now).count()
            : 0.0;
    meters = std::make_unique<instruments>(owner.metrics, name, effective_name, expiry_seconds);
  }
}

void point_core::warn(const char* id, std::string_view message,
                      const std::exception_ptr& thrown) const noexcept {
  if (!engine.log.listened()) return;
  try {
    const auto exception = exception_type(thrown);
    const std::array<log_field, 2> fields{
        {{.name = "name", .value = name}, {.name = "exception", .value = exception}}};
    engine.log.write_limited(name + '/' + id, log_level::warning, message,
                             std::span(fields).first(thrown ? 2 : 1));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // A warning must not break a call.
  }
}

timestamp point_core::expire_on(const call_base& call, const encoded_value& value) const {
  timestamp expires{};
  if (value.expire_on) {
    expires = *value.expire_on;
  } else if (!options.expiry.name().empty()) {
    const auto payload = value.kind == result_kind::store
                             ? std::optional<std::string_view>(value.payload)
                             : std::nullopt;
    expires = engine.options.expiry_policies.find(options.expiry.name())
                  ->second({.point = name, .now = call.now, .payload = payload});
  } else {
    expires = options.expiry.after(call.now);
  }
  if (options.expiry_jitter > 0 && expires > call.now)
    expires -= std::chrono::duration_cast<std::chrono::microseconds>(
        (expires - call.now) * (options.expiry_jitter * random_fraction()));
  // as_of may be ahead of a clock that was set back, and the store refuses an entry that expires
  // before its as_of.
  return expires < call.now ? expires : std::max(call.provenance.as_of, expires);
}

entry point_core::tombstone(const call_base& call, const std::string& row_name,
                            const std::string& key) const {
  return {.name = row_name,
          .key = key,
          .as_of = call.provenance.as_of,
          .expire_on = expire_on(call, {.kind = result_kind::absent}),
          .payload = {},
          .payload_class = {},
          .realm = call.realm};
}

point_status point_core::status() const {
  return {.name = name,
          .domain = options.domain,
          .effective_name = effective_name,
          .expiry = options.expiry.text(),
          .payload_class = payload_class,
          .enabled = options.enabled,
          .breaker = breaker ? breaker->state(engine.clock->steady()) : breaker_state::closed,
          .running = running(),
          .numbers = counts.numbers()};
}

point_options point_core::resolved() const {
  auto resolved = options;
  resolved.domain = effective_name;
  if (!resolved.key_style) resolved.key_style = engine.options.keys.style;
  resolved.exception_policy = policy;
  resolved.write_behind = engine.write_queue && options.write_behind.value_or(true);
  resolved.max_payload = max_payload;
  resolved.payload_class = payload_class;
  resolved.scatter = scatter;
  return resolved;
}

std::uint64_t row_id(std::uint64_t name_hash, std::string_view key,
                     std::string_view realm) noexcept {
  constexpr std::uint64_t odd = 0x9E3779B97F4A7C15U;
  std::uint64_t id = 0;
  if (key.size() >= 36) {  // the text of a UUID, which is a hash: mix its first and last part
    std::uint64_t tail = 0;
    std::memcpy(&id, key.data(), sizeof id);
    std::memcpy(&tail, key.data() + 28, sizeof tail);
    id = (id * odd) ^ (tail << 1U);
    id = (id ^ (id >> 29U)) * odd;
    id ^= id >> 32U;
  } else {
    id = std::hash<std::string_view>{}(key);
  }
  id ^= name_hash;
  if (!realm.empty()) id = (id * odd) ^ std::hash<std::string_view>{}(realm);
  return id;
}

const std::shared_ptr<call_scheduler::group>& point_core::call_group() const {
  std::call_once(call_group_made_, [&] { call_group_ = engine.calls().add_group(); });
  return call_group_;
}

const std::shared_ptr<call_scheduler::group>& point_core::read_group() const {
  std::call_once(read_group_made_, [&] { read_group_ = engine.reads().add_group(); });
  return read_group_;
}

const std::shared_ptr<call_scheduler::group>& point_core::refresh_group() const {
  std::call_once(refresh_group_made_, [&] { refresh_group_ = engine.refreshes().add_group(); });
  return refresh_group_;
}

void point_core::enrich(call_base& call) const noexcept {
  try {
    call.enrich();
  } catch (...) {
    count(counter::hook_failed);
    warn("enrich", "the enrich hook threw; the answer is served unchanged",
         std::current_exception());
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
