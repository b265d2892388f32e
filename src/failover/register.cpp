// Registering a point: everything that can be wrong with it is found here, all at once, and not at the first outage.

#include "base/utf8.hpp"
#include "failover/exception_type.hpp"
#include "failover/manifest.hpp"
#include "failover/point_core.hpp"
#include "failover/type_name.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

payload_allowlist allowlist_of(const point_type& type, const std::string& written) {
  payload_allowlist allowed = type.allowed;
  allowed.allow_exactly(written);
  return allowed;
}

std::shared_ptr<store> store_for(const engine_core& engine, const point_options& options) {
  return options.write_behind.value_or(true) ? engine.front : engine.through;
}

scatter_options scatter_of(const engine_core& engine, const point_options& options) {
  auto how = options.scatter ? *options.scatter : engine.options.scatter;
  how.timeout = std::min<std::chrono::microseconds>(how.timeout, longest_wait);
  return how;
}

std::string manifest_name_of(std::string_view name, const point_type& type) {
  return type.listed ? std::string(name).append(manifest_suffix) : std::string();
}

class inspection {
 public:
  inspection(const engine_core& engine, std::string_view name, const point_options& options, const point_type& type)
      : engine_(engine), name_(name), options_(options), type_(type) {
    check_names();
    check_times();
    check_scope();
    check_around();
    check_class();
    check_scatter();
  }

  void add(std::string problem, errc code = errc::invalid_argument) {
    if (problem.empty()) return;
    code_ = problems_.empty() ? code : errc::invalid_argument;
    problems_.push_back(std::move(problem));
  }
  void compare(const point_core& other) {
    const auto effective = key::effective_name({name_, options_.domain});
    if (!other.manifest_name.empty() && other.manifest_name == effective)
      add("its rows would be among the manifests of '" + other.name + "'; choose another name or domain");
    if (type_.listed && other.effective_name == manifest_name_of(name_, type_))
      add("its manifests would be among the rows of '" + other.name + "'; choose another name");
    if (other.effective_name != key::effective_name({name_, options_.domain})) return;
    const auto differs = [&](const char* what, const std::string& theirs, const std::string& ours) {
      add("its " + std::string(what) + " (" + ours + ") is not that of '" + other.name + "' (" + theirs + "), which shares its rows");
    };
    if (!(other.options.expiry == options_.expiry)) differs("expiry", other.options.expiry.text(), options_.expiry.text());
    if (other.options.vary != options_.vary)
      differs("vary", std::to_string(other.options.vary.size()) + " dimensions", std::to_string(options_.vary.size()));
  }
  [[nodiscard]] key::failover_keys keys() {
    const auto style = options_.key_style.value_or(engine_.options.key_style);
    if (style != key::style::exact && engine_.through->peer() == peer::java)
      add("the store is shared with the Java library, which finds rows by exact keys; leave key_style alone");
    try {
      return key::failover_keys({.name = name_, .domain = options_.domain},
                                {.style = style,
                                 .hash = engine_.options.hash,
                                 .secret = engine_.options.secret,
                                 .generator = options_.key_generator,
                                 .on_unstable = unstable()},
                                engine_.options.generators);
    } catch (const error& e) {
      add(e.message(), e.code());
      return key::failover_keys({.name = "refused"});
    }
  }
  [[nodiscard]] const std::string& written_class() const noexcept { return class_; }

  void finish() const {
    if (problems_.empty()) return;
    std::string all = "the point '" + std::string(name_) + "' cannot be registered: ";
    for (const auto& each : problems_) {
      if (&each != &problems_.front()) all.append("; ");
      all.append(each);
    }
    throw error(code_, all, {.path = "point '" + std::string(name_) + "'"});
  }

 private:
  std::function<void(std::string_view, std::string_view)> unstable() const {
    return [&log = engine_.log](std::string_view point, std::string_view type) {
      log.write(log_level::warning, "an argument is keyed by its hash code, which is seldom stable; give it a text",
                {{.name = "name", .value = point}, {.name = "type", .value = type}});
    };
  }
  void check_names() {
    const auto effective = key::effective_name({name_, options_.domain});
    if (effective.find('\0') != std::string_view::npos || name_.find('\0') != std::string_view::npos)
      add("its name or domain contains a NUL character");
    if (const auto length = count_code_points(effective); length > max_name_length)
      add("its " + std::string(effective.data() == name_.data() ? "name" : "domain") + " has " + std::to_string(length) +
              " characters; the table holds " + std::to_string(max_name_length),
          errc::too_large);
  }
  void check_times() {
    if (!options_.expiry.positive()) add("its expiry must be more than nothing");
    const auto& policy = options_.expiry.name();
    if (!policy.empty() && !engine_.options.expiry_policies.contains(policy))
      add("there is no expiry policy '" + policy + "'; add it to engine_options::expiry_policies", errc::not_found);
    if (options_.soft_expiry) {
      if (options_.soft_expiry->count() <= 0) add("its soft_expiry must be more than nothing");
      const timestamp now = engine_.clock->now();
      if (policy.empty() && options_.expiry.positive() && *options_.soft_expiry >= options_.expiry.after(now) - now)
        add("its soft_expiry must be shorter than its expiry");
      if (!type_.ownable) add("a soft_expiry needs arguments that can be copied");
    }
    if (options_.deadline) {
      if (options_.deadline->count() <= 0) add("its deadline must be more than nothing");
      if (!type_.ownable) add("a deadline needs arguments that can be copied: the call owns them");
    }
  }
  void check_scope() {
    std::set<std::string, std::less<>> seen;
    for (const auto& dimension : options_.vary) {
      if (dimension.empty() || dimension.find_first_of("|=\\") != std::string::npos)
        add("a dimension of vary is empty or contains one of | = \\");
      if (!seen.insert(dimension).second) add("the dimension '" + dimension + "' of vary is there twice", errc::duplicate);
    }
    if (!options_.vary.empty() && !engine_.options.vary) add("it varies, and engine_options::vary does not say by whom");
    if (!type_.has_arguments && options_.vary.empty() && !engine_.options.tenant && options_.scope != scope::shared &&
        options_.key_generator.empty())
      add("it has no arguments, so everybody would be served the same; say .scope = scope::shared, or .vary = {...}");
  }
  void check_around() {
    if (options_.breaker) add(breaker::problem_of(*options_.breaker));
    if (options_.retry) add(retry_plan::problem_of(*options_.retry));
    if (options_.retry && !type_.ownable) add("a retry needs arguments that can be copied");
    const auto policy = options_.exception_policy.value_or(engine_.options.exception_policy);
    if (policy == exception_policy::custom && !type_.has_unserved && !engine_.options.unserved)
      add("its exception policy is custom; give point_hooks::unserved or engine_options::unserved");
    if (!engine_.options.write_behind && options_.write_behind.value_or(false))
      add("it wants write-behind, which engine_options::write_behind switched off");
    if (!options_.write_behind.value_or(true) && engine_.behind && !engine_.owns_queue)
      add("its write_behind = false cannot be kept, for the store writes behind by itself; give the engine the store below the queue");
  }
  void check_class() {
    class_ = options_.payload_class;
    if (class_.empty()) class_ = type_.registered_name;
    if (class_.empty()) class_ = default_class_name(type_.printed_name);
    if (class_.empty()) {
      add("its answer has a type without a stable name; register it in engine_options::payloads or say .payload_class", errc::not_found);
      return;
    }
    try {
      payload_allowlist().allow_exactly(class_);
    } catch (const error& e) {
      add(e.message(), e.code());
    }
  }

  void check_scatter() {
    if (!type_.scattered) return;
    const auto& how = options_.scatter ? *options_.scatter : engine_.options.scatter;
    if (how.timeout.count() <= 0) add("its scatter.timeout must be more than nothing");
    if (how.parallel == 0) add("its scatter.parallel must be at least 1");
    if (how.max_slices == 0) add("its scatter.max_slices must be at least 1");
    if (options_.soft_expiry) add("a soft_expiry is not for calls that are stored in slices; give it to the single call of the domain");
    if (options_.single_flight) add("single_flight is not for calls that are stored in slices");
    if (!type_.ownable) add("a call that is stored in slices needs arguments that can be copied");
    if (how.unlisted == unlisted::serve && !options_.vary.empty())
      add("it varies, so scatter.unlisted must be refuse: rows of other callers would be served");
    if (!type_.listed) return;
    if (const auto length = count_code_points(manifest_name_of(name_, type_)); length > max_name_length)
      add("its name with '" + std::string(manifest_suffix) + "', where its manifests are, has " + std::to_string(length) +
              " characters; the table holds " + std::to_string(max_name_length),
          errc::too_large);
  }

  const engine_core& engine_;
  const std::string_view name_;
  const point_options& options_;
  const point_type& type_;
  std::string class_{};
  std::vector<std::string> problems_{};
  errc code_ = errc::invalid_argument;
};

way way_for(const point_options& options) {
  if (!options.enabled) return way::bypass;
  return options.deadline ? way::owned : way::plain;
}

std::shared_ptr<point_core> add_point(const std::shared_ptr<engine_core>& engine, std::string_view name, const point_options& given,
                                      point_type type, bool reuse) {
  if (engine->closed.load(std::memory_order_acquire)) throw error(errc::unavailable, "the engine is closed and takes no more points");
  // Owns the engine, points to the point.
  const auto handle = [&](const std::shared_ptr<point_core>& core) { return std::shared_ptr<point_core>(engine, core.get()); };
  if (reuse) {
    const std::shared_lock lock(engine->points_mutex);
    if (const auto found = engine->points.find(name); found != engine->points.end()) {
      if (found->second->type.type != type.type)
        throw error(errc::invalid_argument, "the point '" + std::string(name) + "' answers with another type", {.path = "point"});
      return handle(found->second);
    }
  }
  point_options options = given;
  if (engine->options.configure) engine->options.configure(name, options);
  const std::unique_lock lock(engine->points_mutex);
  inspection look(*engine, name, options, type);
  auto keys = look.keys();
  if (engine->points.contains(name)) look.add("there is a point of that name already; names are unique", errc::duplicate);
  if (engine->points.size() >= engine->options.max_points) look.add("there are engine_options::max_points points already", errc::too_large);
  for (const auto& other : engine->points) look.compare(*other.second);
  look.finish();
  auto made = std::make_shared<point_core>(*engine, std::string(name), options, std::move(type), std::move(keys), look.written_class());
  engine->points.emplace(std::string(name), made);
  engine->metrics->gauge("holdfast_failover_points", {}, "points that are registered")->set(static_cast<double>(engine->points.size()));
  return handle(made);
}

}  // namespace

point_core::point_core(engine_core& of, std::string its_name, point_options given, point_type its_type, key::failover_keys its_keys,
                       std::string written_class)
    : engine(of),
      name(std::move(its_name)),
      options(std::move(given)),
      type(std::move(its_type)),
      keys(std::move(its_keys)),
      effective_name(keys.effective_name()),
      payload_class(std::move(written_class)),
      manifest_name(manifest_name_of(name, type)),
      allowed(allowlist_of(type, payload_class)),
      seed(std::hash<std::string>{}(effective_name)),
      policy(options.exception_policy.value_or(of.options.exception_policy)),
      max_payload(options.max_payload != 0 ? options.max_payload : of.options.max_payload),
      scatter(scatter_of(of, options)),
      writes(store_for(of, options)),
      guarded(options.breaker || options.concurrency_limit != 0),
      deadline(std::min<std::chrono::microseconds>(options.deadline.value_or(std::chrono::microseconds::zero()), longest_wait)),
      soft_expiry(options.soft_expiry.value_or(std::chrono::microseconds::zero())),
      timed(guarded || options.deadline || of.options.metrics),
      how(way_for(options)),
      limit(options.concurrency_limit) {
  if (options.breaker) breaker = std::make_unique<holdfast::breaker>(*options.breaker);
  if (options.retry && options.retry->attempts > 1) retry = std::make_unique<retry_plan>(*options.retry, std::random_device{}());
  if (of.options.metrics) {
    const auto now = of.clock->now();
    const auto lasts = options.expiry.name().empty() ? std::chrono::duration<double>(options.expiry.after(now) - now).count() : 0.0;
    meters = std::make_unique<instruments>(of.metrics, name, effective_name, lasts);
  }
}

void point_core::warn(const char* id, std::string_view message, const std::exception_ptr& why) const noexcept {
  if (!engine.log.listened()) return;
  try {
    // Types and codes only: a message may hold what nobody should read.
    const auto type_of = exception_type(why);
    const std::array<log_field, 2> fields{{{.name = "name", .value = name}, {.name = "exception", .value = type_of}}};
    engine.log.write_limited(name + '/' + id, log_level::warning, message, std::span(fields).first(why ? 2 : 1));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // A warning is not worth a call.
  }
}

std::shared_ptr<point_core> make_point(const std::shared_ptr<engine_core>& engine, std::string_view name, const point_options& options,
                                       point_type type) {
  return add_point(engine, name, options, std::move(type), false);
}
std::shared_ptr<point_core> find_or_make_point(const std::shared_ptr<engine_core>& engine, std::string_view name,
                                               const point_options& options, point_type type) {
  return add_point(engine, name, options, std::move(type), true);
}
const payload_registry& payloads_of(const engine_core& engine) noexcept { return engine.options.payloads; }

}  // namespace HOLDFAST_NAMESPACE::detail
