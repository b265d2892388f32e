// Registers points. All problems of a point are found and reported at registration, not at the
// first outage.

#include "base/utf8.hpp"
#include "failover/point_core.hpp"
#include "failover/scatter/manifest.hpp"
#include "failover/type_name.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

/// Collects the problems of a point.
class point_check {
 public:
  point_check(const engine_core& engine, std::string_view name, const point_options& options,
              const point_type& type)
      : engine_(engine),
        name_(name),
        effective_name_(holdfast::key::effective_name({name, options.domain})),
        options_(options),
        scatter_(options.scatter ? *options.scatter : engine.options.scatter),
        type_(type) {
    check_names();
    check_times();
    check_scope();
    check_policies();
    check_class();
    if (type.scattered) check_scatter();
  }

  void add(std::string problem, errc code = errc::invalid_argument) {
    if (problem.empty()) return;
    code_ = problems_.empty() ? code : errc::invalid_argument;
    problems_.push_back(std::move(problem));
  }
  /// Checks for conflicts with a registered point.
  void compare(const point_core& other) {
    if (!other.manifest_name.empty() && other.manifest_name == effective_name_)
      add("its rows would be among the manifests of '" + other.name +
          "'; choose another name or domain");
    if (type_.listed && other.effective_name == manifest_name_of(name_, type_))
      add("its manifests would be among the rows of '" + other.name + "'; choose another name");
    if (other.effective_name != effective_name_) return;
    const auto differs = [&](const char* option, const std::string& theirs,
                             const std::string& ours) {
      add("its " + std::string(option) + " (" + ours + ") is not that of '" + other.name + "' (" +
          theirs + "), which shares its rows");
    };
    if (!(other.options.expiry == options_.expiry))
      differs("expiry", other.options.expiry.text(), options_.expiry.text());
    if (other.options.vary != options_.vary)
      differs("vary", std::to_string(other.options.vary.size()) + " dimensions",
              std::to_string(options_.vary.size()));
  }
  [[nodiscard]] holdfast::key::failover_keys make_keys() {
    const auto style = options_.key_style.value_or(engine_.options.keys.style);
    if (style != holdfast::key::style::exact && engine_.base_store->peer() == peer::java)
      add("the store is shared with the Java library, which finds rows by exact keys; leave "
          "key_style alone");
    try {
      return holdfast::key::failover_keys(
          {.name = name_, .domain = options_.domain},
          {.style = style,
           .hash = engine_.options.keys.hash,
           .secret = engine_.options.keys.secret,
           .generator = options_.key_generator,
           .on_unstable =
               [&log = engine_.log](std::string_view point, std::string_view type) {
                 log.write(log_level::warning,
                           "an argument is keyed by its hash code, which is rarely stable; give "
                           "it a text form",
                           {{.name = "name", .value = point}, {.name = "type", .value = type}});
               }},
          engine_.options.keys.generators);
    } catch (const error& e) {
      add(e.message(), e.code());
      return holdfast::key::failover_keys({.name = "refused"});
    }
  }
  [[nodiscard]] const std::string& payload_class() const noexcept { return payload_class_; }

  void throw_problems() const {
    if (problems_.empty()) return;
    const std::string path = "point '" + std::string(name_) + "'";
    throw error(code_, join_problems("the " + path + " cannot be registered: ", problems_),
                {.path = path});
  }

 private:
  void require(bool valid, const char* problem) {
    if (!valid) add(problem);
  }
  void check_length(const std::string& subject, std::string_view text) {
    if (const auto length = count_code_points(text); length > max_name_length)
      add(subject + " has " + std::to_string(length) + " characters; the table holds " +
              std::to_string(max_name_length),
          errc::too_large);
  }
  void check_names() {
    require(effective_name_.find('\0') == std::string_view::npos &&
                name_.find('\0') == std::string_view::npos,
            "its name or domain contains a NUL character");
    check_length(effective_name_.data() == name_.data() ? "its name" : "its domain",
                 effective_name_);
  }
  void check_times() {
    require(options_.expiry.positive(), "its expiry must be positive");
    const auto& policy = options_.expiry.name();
    if (!policy.empty() && !engine_.options.expiry_policies.contains(policy))
      add("there is no expiry policy '" + policy + "'; add it to engine_options::expiry_policies",
          errc::not_found);
    if (options_.soft_expiry) {
      require(options_.soft_expiry->count() > 0, "its soft_expiry must be positive");
      const timestamp now = engine_.clock->now();
      require(!policy.empty() || !options_.expiry.positive() ||
                  *options_.soft_expiry < options_.expiry.after(now) - now,
              "its soft_expiry must be shorter than its expiry");
      require(type_.ownable, "a soft_expiry needs arguments that can be copied");
    }
    if (options_.deadline) {
      require(options_.deadline->count() > 0, "its deadline must be positive");
      require(type_.ownable, "a deadline needs arguments that can be copied: the call owns them");
    }
    if (options_.soft_timeout)
      require(options_.soft_timeout->count() > 0 && options_.deadline &&
                  *options_.soft_timeout < *options_.deadline,
              "its soft_timeout must be positive and shorter than its deadline");
    require(options_.expiry_jitter >= 0 && options_.expiry_jitter <= 1,
            "its expiry_jitter must be from 0 to 1");
  }
  void check_scope() {
    std::set<std::string, std::less<>> seen;
    for (const auto& dimension : options_.vary) {
      require(!dimension.empty() && dimension.find_first_of("|=\\") == std::string::npos,
              "a dimension of vary is empty or contains one of | = \\");
      if (!seen.insert(dimension).second)
        add("vary contains the dimension '" + dimension + "' twice", errc::duplicate);
    }
    require(options_.vary.empty() || engine_.options.caller.vary,
            "it has vary, but engine_caller::vary is not set");
    require(type_.has_arguments || !options_.vary.empty() || engine_.options.caller.tenant ||
                options_.scope == scope::shared || !options_.key_generator.empty(),
            "it has no arguments, so all callers would share one answer; set .scope = "
            "scope::shared, or .vary = {...}");
  }
  void check_policies() {
    if (options_.breaker) add(breaker::problem_of(*options_.breaker));
    if (options_.retry) add(retry_plan::problem_of(*options_.retry));
    require(!options_.retry || type_.ownable, "a retry needs arguments that can be copied");
    const auto policy = options_.exception_policy.value_or(engine_.options.exception_policy);
    require(policy != exception_policy::custom || type_.has_unserved || engine_.options.unserved,
            "its exception policy is custom; set point_hooks::unserved or "
            "engine_options::unserved");
    require(engine_.options.storage.write_behind || !options_.write_behind.value_or(false),
            "write_behind = true has no effect: engine_storage::write_behind is empty");
    require(options_.write_behind.value_or(true) || !engine_.write_queue || engine_.owns_queue,
            "write_behind = false has no effect: the store already has a write-behind queue; give "
            "the engine the store below the queue");
  }
  void check_class() {
    payload_class_ = options_.payload_class;
    if (payload_class_.empty()) payload_class_ = type_.registered_name;
    if (payload_class_.empty()) payload_class_ = default_class_name(type_.printed_name);
    if (payload_class_.empty())
      return add(
          "its answer has a type without a stable name; register it in "
          "engine_storage::payloads or set .payload_class",
          errc::not_found);
    try {
      payload_allowlist().allow_exactly(payload_class_);
    } catch (const error& e) {
      add(e.message(), e.code());
    }
  }
  void check_scatter() {
    require(scatter_.timeout.count() > 0, "its scatter.timeout must be positive");
    require(scatter_.parallel != 0, "its scatter.parallel must be at least 1");
    require(scatter_.max_slices != 0, "its scatter.max_slices must be at least 1");
    require(!options_.soft_expiry,
            "soft_expiry is not for calls that are stored in slices; use it for the single call of "
            "the domain");
    require(!options_.single_flight, "single_flight is not for calls that are stored in slices");
    require(type_.ownable, "a call that is stored in slices needs arguments that can be copied");
    require(scatter_.unlisted != unlisted::serve || options_.vary.empty(),
            "it varies, so scatter.unlisted must be refuse: rows of other callers would be served");
    if (type_.listed)
      check_length(
          "its name with '" + std::string(manifest_suffix) + "', the name of its manifests,",
          manifest_name_of(name_, type_));
  }

  const engine_core& engine_;
  const std::string_view name_;
  const std::string_view effective_name_;
  const point_options& options_;
  const scatter_options& scatter_;
  const point_type& type_;
  std::string payload_class_{};
  std::vector<std::string> problems_{};
  errc code_ = errc::invalid_argument;
};

/// A pointer to the point that owns the engine.
std::shared_ptr<point_core> owning(const std::shared_ptr<engine_core>& engine,
                                   const std::shared_ptr<point_core>& point) {
  return {engine, point.get()};
}

void require_open(const engine_core& engine) {
  if (engine.closed.load(std::memory_order_acquire))
    throw error(errc::unavailable, "the engine is closed and takes no more points");
}

}  // namespace

std::shared_ptr<point_core> make_point(const std::shared_ptr<engine_core>& engine,
                                       std::string_view name, const point_options& options,
                                       point_type type) {
  require_open(*engine);
  point_options configured = options;
  if (engine->options.configure) engine->options.configure(name, configured);
  const std::unique_lock lock(engine->points_mutex);
  point_check check(*engine, name, configured, type);
  auto keys = check.make_keys();
  if (engine->points.contains(name))
    check.add("there is a point with this name already; names are unique", errc::duplicate);
  if (engine->points.size() >= engine->options.max_points)
    check.add("the engine already has engine_options::max_points points", errc::too_large);
  for (const auto& other : engine->points) check.compare(*other.second);
  check.throw_problems();
  auto point = std::make_shared<point_core>(*engine, std::string(name), configured, std::move(type),
                                            std::move(keys), check.payload_class());
  engine->points.emplace(std::string(name), point);
  engine->metrics->gauge("holdfast_failover_points", {}, "points that are registered")
      ->set(static_cast<double>(engine->points.size()));
  return owning(engine, point);
}

std::shared_ptr<point_core> find_or_make_point(const std::shared_ptr<engine_core>& engine,
                                               std::string_view name, const point_options& options,
                                               point_type type) {
  require_open(*engine);
  {
    const std::shared_lock lock(engine->points_mutex);
    if (const auto known_point = engine->points.find(name); known_point != engine->points.end()) {
      if (known_point->second->type.type != type.type)
        throw error(errc::invalid_argument,
                    "the point '" + std::string(name) + "' answers with another type",
                    {.path = "point"});
      return owning(engine, known_point->second);
    }
  }
  return make_point(engine, name, options, std::move(type));
}

const payload_registry& payloads_of(const engine_core& engine) noexcept {
  return engine.options.storage.payloads;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
