#include "serve/readiness.hpp"

#include <holdfast/error.hpp>
#include <holdfast/log.hpp>

#include <mutex>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using steady = std::chrono::steady_clock;

struct database_check {
  readiness_check question{};
  steady::time_point asked{};  // the last question, which may wait for its answer
  bool waiting = false;
  bool answered_once = false;
  bool available = false;
  std::string problem{};  // why it was not available
  bool reported_missing = false;

  [[nodiscard]] bool is_late(std::chrono::milliseconds patience) const {
    return waiting && steady::now() - asked > patience;
  }
};

/// What a check logs when its state has changed.
struct state_change {
  std::string name{};
  bool missing = false;
  std::string problem{};
};

}  // namespace

struct readiness::check_list : std::enable_shared_from_this<readiness::check_list> {
  std::mutex mutex{};
  std::vector<database_check> list{};
  std::function<std::vector<std::string>()> more{};
  std::shared_ptr<thread_pool> threads{};
  std::chrono::milliseconds interval{};
  std::chrono::milliseconds patience{};
  bool all_answered = false;
  log_sink log{};

  void ask(std::size_t index) {
    {
      const std::scoped_lock lock(mutex);
      list[index].asked = steady::now();
      list[index].waiting = true;
    }
    std::optional<std::string> problem;
    try {
      problem = list[index].question.ask();
    } catch (const std::exception& failure) {
      problem = failure.what();
    }
    const bool available = !problem;
    {
      const std::scoped_lock lock(mutex);
      auto& check = list[index];
      check.waiting = false;
      check.available = available;
      check.problem = std::move(problem).value_or("");
      check.answered_once = check.answered_once || available;
    }
    schedule(index, interval);
  }
  void schedule(std::size_t index, std::chrono::milliseconds delay) {
    (void)threads->post_after(delay, [self = weak_from_this(), index] {
      if (const auto target = self.lock()) target->ask(index);
    });
  }

  /// Logs what has changed since the last turn. The command says what is missing at the start.
  void watch() {
    std::vector<state_change> changes;
    {
      const std::scoped_lock lock(mutex);
      for (auto& check : list) {
        const bool late = check.is_late(patience);
        const bool missing = !check.available || late;
        const bool is_first = missing && !check.answered_once;
        if (is_first && !all_answered) continue;
        if (is_first) check.reported_missing = true;
        if (missing == check.reported_missing) continue;
        check.reported_missing = missing;
        changes.push_back({.name = check.question.name,
                           .missing = missing,
                           .problem = late ? "no answer yet" : check.problem});
      }
    }
    const logger out(log);
    for (const auto& change : changes) {
      if (change.missing)
        out.write(log_level::warning, change.name + " does not answer; requests for it get 503",
                  {{.name = "problem", .value = change.problem}});
      else out.write(log_level::warning, change.name + " answers again");
    }
    schedule_watch();
  }
  void schedule_watch() {
    (void)threads->post_after(interval, [self = weak_from_this()] {
      if (const auto target = self.lock()) target->watch();
    });
  }
};

readiness::readiness(readiness_options options)
    : options_(options), begin_(steady::now()), checks_(std::make_shared<check_list>()) {}

readiness::~readiness() = default;

void readiness::start(services& shared, std::function<std::vector<std::string>()> more) {
  std::vector<readiness_check> list;
  list.reserve(shared.stores.size() + shared.outboxes.size() + 1);
  for (const auto& service : shared.stores)
    list.push_back({.name = "store:" + service.name,
                    .ask = [store = service.store] { return problem_of_store(*store); }});
  for (const auto& service : shared.outboxes)
    list.push_back({.name = "outbox:" + service.name,
                    .ask = [outbox = service.outbox] { return problem_of_outbox(outbox); }});
  if (shared.sequences)
    list.push_back({.name = "sequences", .ask = [blocks = shared.sequences->blocks] {
                      (void)blocks->list(1);
                      return std::optional<std::string>();
                    }});
  checks_->log = shared.log;
  checks_->more = std::move(more);
  start(std::move(list));
}

void readiness::start(std::vector<readiness_check> checks) {
  auto& list = checks_->list;
  for (auto& check : checks) list.push_back({.question = std::move(check)});
  checks_->interval = options_.interval;
  checks_->patience = options_.patience;
  const std::size_t watchers = checks_->log ? 1 : 0;
  checks_->threads = make_thread_pool({.threads = std::max<std::size_t>(1, list.size() + watchers),
                                       .name = "hf-ready",
                                       .linger = std::chrono::milliseconds(0)});
  for (std::size_t i = 0; i < list.size(); ++i) checks_->schedule(i, std::chrono::milliseconds(0));
  if (checks_->log) checks_->schedule_watch();
  open_ = true;
}

bool readiness::has_started() const {
  if (!open_) return false;
  const std::scoped_lock lock(checks_->mutex);
  auto& all = checks_->all_answered;
  all = all || steady::now() - begin_ >= options_.start_limit ||
        std::ranges::all_of(checks_->list, &database_check::answered_once);
  return all;
}

std::vector<std::string> readiness::missing() const {
  std::vector<std::string> names;
  if (draining_) names.emplace_back("draining");
  if (!has_started()) names.emplace_back("starting");
  if (!open_) return names;
  {
    const std::scoped_lock lock(checks_->mutex);
    for (const auto& check : checks_->list) {
      if (!check.available || check.is_late(options_.patience))
        names.push_back(check.question.name);
    }
  }
  if (checks_->more) {
    for (auto& name : checks_->more()) names.push_back(std::move(name));
  }
  return names;
}

std::optional<std::string> problem_of_store(holdfast::store& asked) {
  auto health = asked.health();
  if (health.available) return std::nullopt;
  return health.problem.empty() ? "it does not answer" : std::move(health.problem);
}

std::optional<std::string> problem_of_outbox(const holdfast::outbox& asked) {
  const auto problem = asked.admin().health();
  if (!problem) return std::nullopt;
  return problem->what();
}

bool readiness::stop(steady::time_point deadline) {
  if (!open_) return true;
  return checks_->threads->close(deadline).still_running == 0;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
