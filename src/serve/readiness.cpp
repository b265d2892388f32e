#include "serve/readiness.hpp"

#include <holdfast/error.hpp>

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
};

}  // namespace

struct readiness::check_list : std::enable_shared_from_this<readiness::check_list> {
  std::mutex mutex{};
  std::vector<database_check> list{};
  std::function<std::vector<std::string>()> more{};
  std::shared_ptr<thread_pool> threads{};
  std::chrono::milliseconds interval{};
  bool all_answered = false;

  void ask(std::size_t index) {
    {
      const std::scoped_lock lock(mutex);
      list[index].asked = steady::now();
      list[index].waiting = true;
    }
    bool available = false;
    try {
      available = list[index].question.ask();
    } catch (const std::exception&) {
      available = false;
    }
    {
      const std::scoped_lock lock(mutex);
      auto& check = list[index];
      check.waiting = false;
      check.available = available;
      check.answered_once = check.answered_once || available;
    }
    schedule(index, interval);
  }
  void schedule(std::size_t index, std::chrono::milliseconds delay) {
    (void)threads->post_after(delay, [self = weak_from_this(), index] {
      if (const auto target = self.lock()) target->ask(index);
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
                    .ask = [store = service.store] { return store->health().available; }});
  for (const auto& service : shared.outboxes)
    list.push_back({.name = "outbox:" + service.name,
                    .ask = [outbox = service.outbox] { return !outbox.admin().health(); }});
  if (shared.sequences)
    list.push_back({.name = "sequences", .ask = [blocks = shared.sequences->blocks] {
                      (void)blocks->list(1);
                      return true;
                    }});
  checks_->more = std::move(more);
  start(std::move(list));
}

void readiness::start(std::vector<readiness_check> checks) {
  auto& list = checks_->list;
  for (auto& check : checks) list.push_back({.question = std::move(check)});
  checks_->interval = options_.interval;
  checks_->threads = make_thread_pool({.threads = std::max<std::size_t>(1, list.size()),
                                       .name = "hf-ready",
                                       .linger = std::chrono::milliseconds(0)});
  for (std::size_t i = 0; i < list.size(); ++i) checks_->schedule(i, std::chrono::milliseconds(0));
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
      const bool late = check.waiting && steady::now() - check.asked > options_.patience;
      if (!check.available || late) names.push_back(check.question.name);
    }
  }
  if (checks_->more) {
    for (auto& name : checks_->more()) names.push_back(std::move(name));
  }
  return names;
}

bool readiness::stop(steady::time_point deadline) {
  if (!open_) return true;
  return checks_->threads->close(deadline).still_running == 0;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
