#include "serve/live/state.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox/admin.hpp>
#include <holdfast/reporter.hpp>

#include "base/thread.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/live/served_ages.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_counters = 200;
constexpr std::size_t max_instances = 500;
/// Each lane that is shown is two questions.
constexpr std::size_t max_lanes = 32;
/// Holds no lock: it renews one to see who holds it.
constexpr std::string_view lane_observer = "holdfast serve, status";
/// Points of one report that are read.
constexpr std::size_t max_points = 2'000;

breaker_state breaker_of(std::string_view text) {
  if (text == "open") return breaker_state::open;
  return text == "half_open" ? breaker_state::half_open : breaker_state::closed;
}

std::uint64_t count_of(json_object& numbers, std::string_view name) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(numbers.integer(name).value_or(0), 0));
}

std::vector<reported_point> read_points(json_object& state) {
  std::vector<reported_point> points;
  auto objects = state.objects("points");
  if (!objects) return points;
  for (auto& object : *objects) {
    if (points.size() == max_points) break;
    reported_point point{.name = object.required_text("name"),
                         .breaker = breaker_of(object.text("breaker").value_or("")),
                         .running = count_of(object, "running")};
    if (auto numbers = object.object("numbers"))
      point.counts = counts_of({.started = count_of(*numbers, "started"),
                                .live = count_of(*numbers, "live"),
                                .stale = count_of(*numbers, "stale"),
                                .fresh = count_of(*numbers, "fresh"),
                                .substituted = count_of(*numbers, "substituted"),
                                .failed = count_of(*numbers, "failed")});
    points.push_back(std::move(point));
  }
  return points;
}

std::string lane_holder(const holdfast::outbox& source, std::size_t lane) {
  try {
    return source.renew(lane, lane_observer).holder;
  } catch (const error&) {
    return {};
  }
}

outbox_numbers numbers_of(const holdfast::outbox& source) {
  outbox_numbers numbers;
  const auto admin = source.admin();
  for (std::size_t lane = 0; lane < source.lanes(); ++lane) {
    const auto stats = admin.stats(lane);
    static_cast<outbox_stats&>(numbers) += stats;
    if (lane < max_lanes)
      numbers.lanes.push_back({.lane = lane,
                               .pending = stats.pending,
                               .parked = stats.parked,
                               .holder = lane_holder(source, lane)});
  }
  return numbers;
}

std::map<severity, std::uint64_t> count_findings(const store_service& service) {
  std::map<severity, std::uint64_t> counts;
  for (const auto& finding : probe(service.database, service.options).findings)
    ++counts[finding.severity];
  return counts;
}

std::string percent(double part) {
  const auto tenths = std::lround(part * 1'000);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

}  // namespace

live_state::live_state(services& shared, history& past, incident_log& incidents,
                       live_options options)
    : shared_(shared), history_(past), incidents_(incidents), options_(std::move(options)) {
  if (shared_.metrics) metrics_.emplace(shared_.metrics);
  add_questions();
}

live_state::~live_state() { stop(); }

void live_state::add_database(const std::string& url, std::function<void()> question) {
  questions_[url].push_back(std::move(question));
}

void live_state::add_questions() {
  const auto& clock = shared_.clock;
  const auto limit = options_.answer_limit;
  std::set<std::pair<std::string, std::string>> reported;  // URL and prefix
  const auto add_instances = [&](const std::string& url, const database& db,
                                 const std::string& prefix) {
    if (url == "memory:" || !reported.emplace(url, prefix).second) return;
    auto answer = std::make_shared<cached_answer<std::vector<instance_report>>>(clock, limit);
    instances_.push_back({.answer = answer});
    add_database(url, [answer, db, prefix] {
      answer->ask([&] {
        try {
          return read_instances(db, prefix, max_instances);
        } catch (const error& problem) {
          // Nothing reports there: the tables are created by the first reporter.
          if (problem.code() == errc::missing_object) return std::vector<instance_report>{};
          throw;
        }
      });
    });
  };
  for (const auto& service : shared_.stores) {
    add_store_questions(service);
    add_instances(service.url, service.database, service.options.prefix);
  }
  for (const auto& service : shared_.outboxes) {
    auto answer = std::make_shared<cached_answer<outbox_numbers>>(clock, limit);
    outboxes_.emplace_back(service.name, answer);
    add_database(service.url, [answer, outbox = service.outbox] {
      answer->ask([&] { return numbers_of(outbox); });
    });
    add_instances(service.url, service.database, "");
  }
  if (shared_.engine && !shared_.stores.empty()) {
    expiries_ = std::make_shared<point_expiries>(shared_.engine);
    add_database(shared_.stores.front().url, [expiries = expiries_] { expiries->ask(); });
  }
  if (const auto& service = shared_.sequences) {
    counters_ = std::make_shared<cached_answer<std::vector<named_counter>>>(clock, limit);
    ends_ = std::make_shared<sequence_ends>(service->blocks, service->options);
    add_database(service->url, [answer = counters_, ends = ends_, blocks = service->blocks] {
      answer->ask([&] {
        auto counters = blocks->list(max_counters);
        ends->ask(counters);
        return counters;
      });
    });
  }
}

void live_state::add_store_questions(const store_service& service) {
  auto answer = std::make_shared<cached_answer<store_health>>(shared_.clock, options_.answer_limit);
  auto findings =
      std::make_shared<cached_answer<finding_counts>>(shared_.clock, options_.answer_limit);
  stores_.emplace_back(service.name, answer);
  findings_.push_back(findings);
  add_database(service.url, [answer, findings, service, interval = options_.examination_interval,
                             next = std::chrono::steady_clock::time_point{}]() mutable {
    answer->ask([&] { return service.store->health(); });
    const auto health = answer->get();
    const auto now = std::chrono::steady_clock::now();
    if (now < next || !health.value || !health.value->available) return;
    next = now + interval;
    findings->ask([&] { return count_findings(service); });
  });
}

void live_state::start() {
  for (const auto& [url, questions] : questions_)
    databases_.push_back(
        std::make_unique<database_questions>(questions, options_.question_interval));
  thread_ = start_quiet_thread("hf-live", [this] { run(); });
}

void live_state::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  databases_.clear();
}

void live_state::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    try {
      sample();
      if (options_.on_turn) options_.on_turn();
    } catch (const std::exception& failure) {
      if (shared_.log)
        logger(shared_.log)
            .write(log_level::warning, std::string("the state was not sampled: ") + failure.what());
    }
    lock.lock();
    (void)changed_.wait_for(lock, options_.interval, [this] { return stopping_; });
  }
}

double live_state::rate_of(const std::string& name, std::int64_t value, timestamp moment) {
  auto& past = past_counters_[name];
  if (past.moment == timestamp{} || value < past.value) past = {.value = value, .moment = moment};
  // A window of one question is short, but exact.
  if (moment <= past.moment) return past.rate;
  const std::chrono::duration<double> passed = moment - past.moment;
  past = {.value = value,
          .moment = moment,
          .rate = static_cast<double>(value - past.value) / passed.count()};
  return past.rate;
}

bool live_state::is_failing(const std::string& name, const outbox_stats& stats) {
  const auto failures = stats.retried + stats.parkings;
  const auto [it, is_new] = past_deliveries_.try_emplace(
      name, past_deliveries{.acked = stats.acked, .failures = failures});
  auto& past = it->second;
  if (stats.acked != past.acked) past.failing = false;
  else if (failures > past.failures) past.failing = true;
  past.acked = stats.acked;
  past.failures = failures;
  return past.failing && stats.pending > 0;
}

live_state::reported_instance live_state::read_report(const instance_report& report,
                                                      std::chrono::microseconds tolerance) {
  reported_instance instance{.sample = {.id = report.instance, .kind = report.kind},
                             .age = report.age,
                             .silent_after = 3 * report.every + tolerance};
  try {
    auto state = json_object::parse(report.state);
    if (auto health = state.object("health")) {
      instance.sample.healthy = health->boolean("healthy").value_or(true);
      instance.sample.problem = health->text("problem").value_or("");
    }
    instance.points = read_points(state);
  } catch (const error& problem) {
    instance.sample.healthy = false;
    instance.sample.problem = std::string("the report is not readable: ") + problem.what();
  }
  return instance;
}

void live_state::collect_instances(instance_source& source, snapshot& current) {
  // The reports are large, and most turns have no new ones.
  if (const auto count = source.answer->count(); count != source.count) {
    const auto answer = source.answer->get();
    source.count = count;
    source.moment = answer.moment;
    source.reports.clear();
    if (answer.value) {
      for (const auto& report : *answer.value)
        source.reports.push_back(read_report(report, options_.question_interval));
    }
  }
  // A report grows older while the database does not answer.
  const auto passed = std::max(std::chrono::microseconds(0), current.moment - source.moment);
  for (auto& report : source.reports) {
    auto sample = report.sample;
    sample.age = report.age + passed;
    sample.silent = sample.age > report.silent_after;
    if (!sample.silent) {
      if (std::exchange(report.is_new, false)) points_.add(sample.id, report.points);
      else points_.repeat(sample.id);
    }
    current.instances.push_back(std::move(sample));
  }
}

void live_state::collect_points(snapshot& current) {
  if (shared_.engine) {
    std::vector<reported_point> own;
    for (const auto& status : shared_.engine->points())
      own.push_back({.name = status.name,
                     .breaker = status.breaker,
                     .running = status.running,
                     .counts = counts_of(status.numbers)});
    points_.add("", own);
  }
  for (auto& source : instances_) collect_instances(source, current);
  current.points = points_.finish(shared_.clock->steady());
  add_expiries(current.points);
  if (!shared_.ages) return;
  for (auto& point : current.points)
    point.oldest_served = shared_.ages->oldest(point.name, current.moment);
}

void live_state::add_expiries(std::vector<point_sample>& points) const {
  if (!shared_.engine) return;
  std::set<std::string> own;
  for (const auto& status : shared_.engine->points()) own.insert(status.name);
  for (auto& point : points) {
    point.own = own.contains(point.name);
    if (!point.own) continue;
    point.coverage = shared_.engine->coverage(point.name).part();
    if (!expiries_) continue;
    const auto times = expiries_->get(point.name);
    point.first_expiry = times.first;
    point.half_expiry = times.half;
  }
}

snapshot live_state::collect() {
  snapshot current{.moment = shared_.clock->now()};
  collect_points(current);
  for (std::size_t i = 0; i < stores_.size(); ++i)
    current.stores.push_back({.name = stores_[i].first,
                              .health = stores_[i].second->get(),
                              .findings = findings_[i]->get().value});
  for (const auto& [name, answer] : outboxes_) {
    outbox_sample sample{.name = name, .stats = answer->get()};
    if (sample.stats.value) {
      const auto& stats = *sample.stats.value;
      sample.published_rate = rate_of(
          "published:" + name, static_cast<std::int64_t>(stats.published), sample.stats.moment);
      sample.acked_rate =
          rate_of("acked:" + name, static_cast<std::int64_t>(stats.acked), sample.stats.moment);
      sample.failing = is_failing(name, stats);
    }
    current.outboxes.push_back(std::move(sample));
  }
  if (counters_) {
    current.counters = counters_->get();
    if (current.counters.value)
      for (const auto& counter : *current.counters.value)
        current.sequences.push_back(
            {.name = counter.name,
             .counter = counter.state,
             .rate =
                 rate_of("sequence:" + counter.name, counter.state.last, current.counters.moment),
             .remaining = ends_->part_remaining(counter.name, counter.state.last)});
  }
  return current;
}

std::vector<incident_condition> live_state::conditions_of(const snapshot& current) const {
  std::vector<incident_condition> conditions;
  for (const auto& point : current.points) {
    if (point.unserved > 0)
      conditions.push_back({"point", point.name,
                            point.name + " leaves " + percent(point.unserved_ratio) +
                                " of its calls without an answer"});
    else if (point.stale_ratio > options_.stale_limit)
      conditions.push_back(
          {"point", point.name,
           point.name + " answers " + percent(point.stale_ratio) + " of its calls from the store"});
  }
  for (const auto& store : current.stores) {
    const auto& health = store.health;
    if (!health.problem.empty() && health.problem != "not asked yet")
      conditions.push_back({"store", store.name, store.name + ": " + health.problem});
    else if (health.value && !health.value->available)
      conditions.push_back({"store", store.name, store.name + " does not answer"});
  }
  for (const auto& outbox : current.outboxes) {
    const auto& stats = outbox.stats;
    if (stats.value && stats.value->overdue > options_.overdue_after)
      conditions.push_back(
          {"outbox", outbox.name,
           outbox.name + " has an event that is due since " +
               std::to_string(
                   std::chrono::duration_cast<std::chrono::seconds>(stats.value->overdue).count()) +
               " s" + (stats.value->paused ? "; it is paused" : "")});
  }
  return conditions;
}

void live_state::sample() {
  const std::scoped_lock sampling_lock(sample_mutex_);
  const auto current = collect();
  const auto conditions = conditions_of(current);
  incidents_.observe(current.moment, conditions);
  history_.add(current.moment, history_values(current));
  if (metrics_) metrics_->update(current, incidents_.open().size());
  auto members = status_members(current, shared_.label, conditions, incidents_.open(),
                                options_.jobs ? options_.jobs() : "[]");
  json_writer time;
  const auto json = std::make_shared<const std::string>(
      "{\"at\":" + time.time(current.moment).take() + "," + members);
  {
    const std::scoped_lock lock(mutex_);
    status_ = json;
  }
  if (members == published_) return;
  published_ = std::move(members);
  if (shared_.events != nullptr) shared_.events->publish("state", *json);
}

std::shared_ptr<const std::string> live_state::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
