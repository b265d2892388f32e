#include "property/outbox_simulation.hpp"

#include <holdfast/outbox.hpp>

#include "property/outbox_simulated_store.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

constexpr std::chrono::hours for_ever{24 * 300};

/// What the outside world saw, and the rules it must obey.
class ledger_of_effects {
 public:
  void confirmed(const event& what) {
    if (!confirmed_.insert(what.id).second) return;
    if (!what.key.empty()) order_[what.key].push_back(what.id);
  }
  void delivered(const claimed_event& what) {
    ++deliveries_;
    if (!delivered_.insert(what.event.id).second) return;
    if (const auto due = what.event.headers.find("Holdfast-Due"); due != what.event.headers.end()) {
      recurred_.insert(what.event.id);
      if (!due_times_.insert(due->second).second) fail("two events for " + due->second);
    }
    if (!what.event.key.empty()) first_[what.event.key].push_back(what.event.id);
  }
  void expect_ticket(const std::string& id) { tickets_.insert(id); }
  void forbid_ticket(const std::string& id) {
    tickets_.erase(id);
    forbidden_.insert(id);
  }
  void allow_ticket(const std::string& id) {
    tickets_.erase(id);
    allowed_.insert(id);
  }
  void fail(const std::string& why) {
    if (broken_.empty()) broken_ = why;
  }
  [[nodiscard]] std::size_t deliveries() const { return deliveries_; }
  [[nodiscard]] const std::set<std::string>& all_delivered() const { return delivered_; }
  [[nodiscard]] std::size_t due_times() const { return due_times_.size(); }
  [[nodiscard]] std::string verdict() const {
    if (!broken_.empty()) return broken_;
    for (const auto& id : confirmed_) {
      if (!delivered_.contains(id)) return "the confirmed event " + id + " was never delivered";
    }
    for (const auto& id : delivered_) {
      if (!confirmed_.contains(id) && !tickets_.contains(id) && !allowed_.contains(id) &&
          !recurred_.contains(id)) {
        return (forbidden_.contains(id) ? "a cancelled ticket fired: "
                                        : "an event that nobody published was delivered: ") +
               id;
      }
    }
    for (const auto& id : tickets_) {
      if (!delivered_.contains(id)) return "the ticket's event " + id + " was never delivered";
    }
    for (const auto& [key, ids] : order_) {
      if (first_.at(key) != ids)
        return "first deliveries of " + key + " were not in the order of publishing";
    }
    return {};
  }

 private:
  std::set<std::string> confirmed_{}, delivered_{}, tickets_{}, forbidden_{}, allowed_{};
  std::set<std::string> recurred_{}, due_times_{};
  std::map<std::string, std::vector<std::string>> order_{}, first_{};
  std::size_t deliveries_ = 0;
  std::string broken_{};
};

/// Publishes what it planned, in order, each until it is confirmed. A crash makes it begin with
/// what is not confirmed.
class producer {
 public:
  producer(std::mt19937_64& random, const std::string& key) {
    const auto count = 3 + random() % 5;
    for (std::size_t i = 0; i < count; ++i) {
      plan_.push_back(
          {.type = "t", .key = key, .payload = std::to_string(i), .id = new_event_id()});
      if (random() % 10 == 0) plan_.back().delay = std::chrono::milliseconds(random() % 500);
    }
  }
  [[nodiscard]] bool done() const { return at_ == plan_.size(); }
  void step(const outbox& box, std::mt19937_64& random, ledger_of_effects& book) {
    const auto count = std::min<std::size_t>(1 + random() % 3, plan_.size() - at_);
    const std::vector<event> part(plan_.begin() + static_cast<std::ptrdiff_t>(at_),
                                  plan_.begin() + static_cast<std::ptrdiff_t>(at_ + count));
    for (const auto& receipt : box.publish_all(part)) {
      if (!receipt.safe()) return;
      book.confirmed(plan_[at_++]);
    }
  }

 private:
  std::vector<event> plan_{};
  std::size_t at_ = 0;
};

/// Schedules a ticket, and perhaps cancels it.
class booking {
 public:
  booking(std::mt19937_64& random, std::string ticket, timestamp now)
      : ticket_(std::move(ticket)),
        at_(now + std::chrono::milliseconds(random() % 3000)),
        cancels_(random() % 2 == 0) {}
  [[nodiscard]] bool done() const { return done_; }
  void step(const outbox& box, ledger_of_effects& book) {
    const auto id = expiry_event_id(ticket_, at_);
    if (!scheduled_) {
      book.expect_ticket(id);  // from now on it may be there
      (void)box.schedule(ticket_, at_, {.type = "ticket", .payload = "fired"});
      scheduled_ = true;
      done_ = !cancels_;
      return;
    }
    if (box.cancel(ticket_) == cancel_status::cancelled)
      doubted_ ? book.allow_ticket(id) : book.forbid_ticket(id);
    done_ = true;
  }
  /// A reply was lost. A schedule is repeated: it is the same again, though it may have fired in
  /// between, before a cancel could see it. After a cancel, whether the event comes is open, and
  /// not what is checked.
  void doubt(ledger_of_effects& book) {
    doubted_ = true;
    if (!scheduled_ || done_) return;
    book.allow_ticket(expiry_event_id(ticket_, at_));
    done_ = true;
  }

 private:
  std::string ticket_;
  timestamp at_;
  bool cancels_, scheduled_ = false, done_ = false, doubted_ = false;
};

/// Defines a recurring event again and again, as every process does when it starts.
class recurring_definition {
 public:
  static constexpr auto cron = "* * * * * *";
  void step(const outbox& box) {
    defined_ = true;  // perhaps; a reply may be lost
    (void)box.recur("every second", cron,
                    {.catch_up = catch_up_policy::all,
                     .catch_up_limit = 1000,
                     .tolerance = std::chrono::hours(1)},
                    {.type = "recurring", .key = "r", .payload = "due"});
  }
  [[nodiscard]] bool defined() const { return defined_; }

 private:
  bool defined_ = false;
};

/// Every due time from the first one on has had its event, once.
void check_recurring(const outbox& box, const simulated_store& store, ledger_of_effects& book) {
  if (store.recurred_twice()) book.fail("an event of a recurring event was published twice");
  const auto listed = box.admin().recurring();
  if (listed.size() != 1) {
    book.fail("the recurring event is not there");
    return;
  }
  const auto& one = listed.front();
  if (one.published != book.due_times())
    book.fail("of " + std::to_string(one.published) + " due times " +
              std::to_string(book.due_times()) + " were delivered");
  if (one.skipped != 0) book.fail("due times were skipped");
}

class consumer {
 public:
  consumer(std::string name, bool locks) : name_(std::move(name)), locks_(locks) {}

  void crash() {
    batch_ = {};
    outcomes_.clear();
    at_ = 0;
  }
  void step(const outbox& box, simulated_store& store, ledger_of_effects& book) {
    auto& random = store.random();
    if (batch_.events.empty()) {
      fetch(box, random);
    } else if (at_ < batch_.events.size()) {
      if (random() % 8 == 0)
        (void)box.extend(batch_.fence, batch_.events,
                         std::chrono::milliseconds(100 + random() % 400));
      handle(box, random, book);
    } else {
      finish(box, store, book);
    }
  }

 private:
  void fetch(const outbox& box, std::mt19937_64& random) {
    if (random() % 4 == 0) (void)box.drain(0, 2);
    claim_request request{.most = 1 + random() % 3,
                          .run = 1 + random() % 4,
                          .lease = std::chrono::milliseconds(50 + random() % 500)};
    if (locks_) {
      if (!box.lock(0, name_, std::chrono::milliseconds(300)).held) return;
      request.owner = name_;
    }
    batch_ = box.claim(request);
    at_ = 0;
    outcomes_.clear();
  }
  void handle(const outbox& box, std::mt19937_64& random, ledger_of_effects& book) {
    const auto& one = batch_.events[at_];
    const bool skipped =
        !one.event.key.empty() &&
        std::any_of(outcomes_.begin(), outcomes_.end(), [&](const settlement& before) {
          return before.key == one.event.key && before.action != settlement::kind::ack;
        });
    if (skipped) {
      ++at_;
      return;
    }
    book.delivered(one);
    const std::vector<commit_write> effect{{.action = commit_write::kind::add,
                                            .key = box.key_of(one.event.key, one.event.id),
                                            .number = 1}};
    const auto applied = box.effect_once(batch_.fence, one, effect);
    settlement outcome{.id = one.event.id, .key = one.event.key};
    const auto dice = random() % 20;
    if (applied.status == commit_status::stale) {
      crash();  // somebody else has it
      return;
    }
    if (dice < 2) {
      outcome.action = settlement::kind::retry;
      outcome.delay = std::chrono::milliseconds(random() % 200);
      outcome.error = "try again";
    } else if (dice == 2) {
      outcome.action = settlement::kind::park;
      outcome.policy = random() % 2 == 0 ? park_policy::skip : park_policy::block;
      outcome.error = "no";
    } else if (dice == 3) {
      outcome.action = settlement::kind::release;
    }
    outcomes_.push_back(std::move(outcome));
    ++at_;
  }
  void finish(const outbox& box, simulated_store& store, ledger_of_effects& book) {
    const auto token = batch_.fence;
    const auto outcomes = std::move(outcomes_);
    crash();
    if (outcomes.empty()) return;
    std::optional<run_request> next;
    if (store.random()() % 2 == 0)
      next = run_request{
          .run = 3, .lease = std::chrono::milliseconds(200), .owner = locks_ ? name_ : ""};
    // Whoever holds an event when the settling begins is the only one who may settle it.
    std::map<std::string, fence> holders;
    for (const auto& one : outcomes) holders[one.id] = store.last_fence(one.id);
    auto result = box.settle(0, token, outcomes, next);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (result.done[i] && holders[outcomes[i].id] > token)
        book.fail("a late holder settled " + outcomes[i].id);
    }
    if (!result.next.events.empty()) batch_ = std::move(result.next);
  }

  std::string name_;
  bool locks_;
  claimed batch_{};
  std::vector<settlement> outcomes_{};
  std::size_t at_ = 0;
};

/// No faults any more: everything that is left is delivered, the parked ones are replayed first.
void finish_all(const outbox& box, simulated_store& store, ledger_of_effects& book) {
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> parked;
    for (const auto& one : box.admin().scan(scan_what::parked).records)
      parked.push_back(one.details.event.id);
    (void)box.admin().replay(parked);
    while (box.drain(0, 100).recurring > 0) {
    }
    auto got = box.claim({.run = 10});
    if (got.events.empty()) {
      const auto stats = box.admin().stats();
      if (stats.events == 0 && stats.tickets == 0) return;
      store.clock().advance(std::chrono::milliseconds(500));
      continue;
    }
    std::vector<settlement> acks;
    for (const auto& one : got.events) {
      book.delivered(one);
      (void)box.effect_once(
          got.fence, one,
          {{.action = commit_write::kind::add, .key = box.key_of("", one.event.id), .number = 1}});
      acks.push_back({.id = one.event.id, .key = one.event.key});
    }
    (void)box.settle(0, got.fence, std::move(acks));
  }
  book.fail("the outbox does not get empty");
}

void check_effects(const outbox& box, ledger_of_effects& book) {
  for (const auto& id : book.all_delivered()) {
    const auto once = box.commit(
        {.conditions = {
             {.test = commit_condition::kind::equals, .key = box.key_of("", id), .value = "1"}}});
    if (once.status != commit_status::done)
      book.fail("the effect of " + id + " was not applied exactly once");
  }
  if (!box.admin().check().well()) book.fail("the structures do not fit together");
}

}  // namespace

simulation_result simulate(const simulation_plan& plan) {
  auto store = std::make_shared<simulated_store>(plan);
  auto& random = store->random();
  const outbox box(
      store, {.dedup_window = for_ever, .dedup_limit = 1'000'000, .max_deliveries = 1'000'000});
  ledger_of_effects book;
  simulation_result result;

  std::vector<producer> producers;
  for (const auto* key : {"a", "b", "", "c"}) producers.emplace_back(random, key);
  std::vector<booking> bookings;
  for (int i = 0; i < 3; ++i)
    bookings.emplace_back(random, "ticket-" + std::to_string(i), store->clock().now());
  const bool locks = random() % 2 == 0;
  std::vector<consumer> consumers;
  for (int i = 0; i < 3; ++i) consumers.emplace_back("worker-" + std::to_string(i), locks);

  const auto busy = [&] {
    return std::any_of(producers.begin(), producers.end(),
                       [](const producer& p) { return !p.done(); }) ||
           std::any_of(bookings.begin(), bookings.end(),
                       [](const booking& b) { return !b.done(); });
  };
  recurring_definition recurring;
  std::size_t extra = 60;
  for (int step = 0; step < 4000 && (busy() || extra-- > 0); ++step) {
    const auto who = random() % 10;
    consumer* worker = nullptr;
    booking* ticket = nullptr;
    try {
      if (who < 3) {
        auto& one = producers[random() % producers.size()];
        if (!one.done()) one.step(box, random, book);
      } else if (who == 3) {
        if (random() % 4 == 0) recurring.step(box);
        auto& one = bookings[random() % bookings.size()];
        ticket = &one;
        if (!one.done()) one.step(box, book);
      } else {
        worker = &consumers[random() % consumers.size()];
        worker->step(box, *store, book);
      }
    } catch (const crashed&) {
      ++result.crashes;
      if (worker != nullptr) worker->crash();
      if (ticket != nullptr) ticket->doubt(book);
    } catch (const error&) {
      // In doubt: try again, as a caller would. A worker's claim comes back by its lease.
      if (worker != nullptr) worker->crash();
      if (ticket != nullptr) ticket->doubt(book);
    }
  }
  result.boundaries = store->boundaries();
  store->calm();
  for (auto& one : producers) {
    while (!one.done()) one.step(box, random, book);
  }
  if (recurring.defined()) recurring.step(box);
  finish_all(box, *store, book);
  if (recurring.defined()) check_recurring(box, *store, book);
  check_effects(box, book);
  result.broken = book.verdict();
  result.deliveries = book.deliveries();
  return result;
}

}  // namespace holdfast::test
