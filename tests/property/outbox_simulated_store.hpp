#pragma once

/// \file
/// The model behind a network that loses, repeats and delays, used by processes that die.

#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>

#include "property/outbox_simulation.hpp"
#include "support/virtual_clock.hpp"

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Thrown through whoever made the call: its process is gone.
struct crashed {};

/// One thread only.
class simulated_store final : public outbox_backend {
 public:
  explicit simulated_store(const simulation_plan& plan)
      : plan_(plan),
        random_(plan.seed),
        model_(make_memory_outbox({.clock = clock_})),
        faults_(!plan.kill_at) {}

  void calm() {
    faults_ = false;
    plan_.kill_at.reset();
  }
  [[nodiscard]] std::size_t boundaries() const { return calls_; }
  [[nodiscard]] virtual_clock& clock() { return *clock_; }
  [[nodiscard]] std::mt19937_64& random() { return random_; }
  /// Whose claim of an event is the last one, whether or not it heard of it.
  [[nodiscard]] fence last_fence(const std::string& id) const {
    const auto found = fences_.find(id);
    return found == fences_.end() ? 0 : found->second;
  }
  [[nodiscard]] outbox_backend& model() { return *model_; }

  [[nodiscard]] std::size_t lanes() const noexcept override { return 1; }
  [[nodiscard]] std::string key_prefix(std::size_t lane) const override {
    return model_->key_prefix(lane);
  }
  void require(const durability& how) override { model_->require(how); }

  std::vector<receipt> publish(std::size_t lane, std::span<const event> events,
                               const publish_terms& terms) override {
    const auto in_doubt = [&] {
      std::vector<receipt> receipts;
      for (const auto& one : events)
        receipts.push_back({.id = one.id, .status = publish_status::in_doubt, .problem = lost()});
      return receipts;
    };
    const bool forget = plan_.bug == planted::forgets_events && random_() % 20 == 0;
    try {
      return pass(true, [&] {
        if (!forget) return model_->publish(lane, events, terms);
        std::vector<receipt> receipts;
        for (const auto& one : events) receipts.push_back({.id = one.id});
        return receipts;
      });
    } catch (const error&) {
      return in_doubt();
    }
  }
  claimed claim(const claim_request& request) override {
    return pass(false, [&] { return note(model_->claim(request)); });
  }
  std::vector<bool> extend(std::size_t lane, fence token, std::span<const settlement> events,
                           std::chrono::milliseconds lease) override {
    return pass(true, [&] { return model_->extend(lane, token, events, lease); });
  }
  settled settle(std::size_t lane, fence token, std::span<const settlement> what,
                 const std::optional<run_request>& next, const publish_terms& terms) override {
    return pass(false, [&] {
      if (plan_.bug == planted::forgets_tokens && !what.empty() && last_fence(what.front().id) != 0)
        token = last_fence(what.front().id);
      auto result = model_->settle(lane, token, what, next, terms);
      result.next = note(std::move(result.next));
      return result;
    });
  }
  std::size_t park_followers(std::size_t lane, std::string_view key, std::size_t most) override {
    return pass(true, [&] { return model_->park_followers(lane, key, most); });
  }
  std::vector<bool> replay(std::size_t lane, std::span<const std::string> ids) override {
    return model_->replay(lane, ids);
  }
  std::vector<bool> discard(std::size_t lane, std::span<const std::string> ids) override {
    return model_->discard(lane, ids);
  }
  void pause(std::size_t lane, bool paused) override { model_->pause(lane, paused); }
  scheduled schedule(std::size_t lane, std::string_view ticket, std::optional<timestamp> at,
                     std::chrono::milliseconds delay, const event& becomes,
                     const publish_terms& terms) override {
    return pass(true, [&] { return model_->schedule(lane, ticket, at, delay, becomes, terms); });
  }
  cancel_status cancel(std::size_t lane, std::string_view ticket) override {
    return pass(false, [&] { return model_->cancel(lane, ticket); });
  }
  drained drain(std::size_t lane, std::size_t most, const publish_terms& terms) override {
    return pass(true, [&] {
      auto result = model_->drain(lane, most, terms);
      if (plan_.bug == planted::fires_twice && result.tickets > 0) {
        event again{.type = "ticket", .payload = "again", .id = new_event_id()};
        (void)model_->publish(lane, {&again, 1}, terms);
      }
      return result;
    });
  }
  recurrence_page read_recurrences(std::size_t lane, const recurrence_query& query) override {
    auto page = pass(true, [&] { return model_->read_recurrences(lane, query); });
    // Another worker is faster than the one that has read it.
    if (faults_ && random_() % 4 == 0) {
      time_passes();
      (void)outbox(model_, {.dedup_window = std::chrono::hours(24 * 300)}).drain(lane);
    }
    return page;
  }
  update_status update_recurrence(std::size_t lane, const recurrence_update& update,
                                  const publish_terms& terms) override {
    return pass(true, [&] {
      auto made = update;
      if (plan_.bug == planted::recurs_blindly && !update.events.empty()) {
        const auto page = model_->read_recurrences(
            lane, {.selection = recurrence_query::kind::name, .name = update.name});
        if (!page.recurrences.empty()) made.expected = page.recurrences.front().text;
      }
      if (plan_.bug == planted::recurs_without_event) made.events.clear();
      const auto before = model_->stats(lane).duplicates;
      const auto status = model_->update_recurrence(lane, made, terms);
      recurred_twice_ = recurred_twice_ || model_->stats(lane).duplicates != before;
      return status;
    });
  }
  /// An event of a recurring event was published a second time. Its id is the same, so that nobody
  /// sees it while the id is remembered.
  [[nodiscard]] bool recurred_twice() const { return recurred_twice_; }
  lock_grant lock(std::size_t lane, std::string_view owner,
                  std::chrono::milliseconds ttl) override {
    return pass(true, [&] { return model_->lock(lane, owner, ttl); });
  }
  lock_grant renew(std::size_t lane, std::string_view owner,
                   std::chrono::milliseconds ttl) override {
    return pass(true, [&] { return model_->renew(lane, owner, ttl); });
  }
  bool unlock(std::size_t lane, std::string_view owner) override {
    return pass(false, [&] { return model_->unlock(lane, owner); });
  }
  committed commit(std::size_t lane, const commit_request& request,
                   const publish_terms& terms) override {
    auto asked = request;
    if (plan_.bug == planted::repeats_effects) asked.once.clear(), asked.fence = 0;
    return pass(false, [&] { return model_->commit(lane, asked, terms); });
  }
  outbox_stats stats(std::size_t lane) override { return model_->stats(lane); }
  std::optional<outbox_record> find(std::size_t lane, std::string_view id) override {
    return model_->find(lane, id);
  }
  scan_page scan(std::size_t lane, scan_what what, std::string_view after,
                 std::size_t most) override {
    return model_->scan(lane, what, after, most);
  }
  check_report check(std::size_t lane, bool repair) override { return model_->check(lane, repair); }
  bool wait(std::size_t lane, std::chrono::milliseconds longest) override {
    return model_->wait(lane, longest);
  }
  void wake(std::size_t lane) override { model_->wake(lane); }

 private:
  [[nodiscard]] static error lost() {
    return {errc::unavailable, "the reply was lost", {.transient = true, .in_doubt = true}};
  }

  void time_passes() {
    const auto kind = random_() % 20;
    const auto most = kind == 0 ? 2'000'000U : kind < 5 ? 100'000U : 3'000U;
    clock_->advance(std::chrono::microseconds(random_() % most));
  }

  claimed note(claimed got) {
    if (plan_.bug == planted::mixes_up_order && got.events.size() > 1)
      std::swap(got.events.front(), got.events.back());
    for (const auto& one : got.events) {
      const auto found = fences_.find(one.event.id);
      const bool again = found != fences_.end();
      if (plan_.bug == planted::loses_with_a_lease && again && one.deliveries > 1) {
        // Taken away behind everybody's back.
        const settlement ack{.id = one.event.id, .key = one.event.key};
        (void)model_->settle(0, got.fence, {&ack, 1}, std::nullopt, {});
      }
      fences_[one.event.id] = got.fence;
    }
    if (plan_.bug == planted::loses_with_a_lease)
      std::erase_if(got.events, [](const claimed_event& one) { return one.deliveries > 1; });
    return got;
  }

  /// A call: the request may be lost, run twice, or be the last thing its process did; the reply
  /// may be lost, too.
  template <class Run>
  auto pass(bool may_repeat, Run run) -> decltype(run()) {
    const auto number = calls_++;
    time_passes();
    if (plan_.kill_at) {
      if (*plan_.kill_at / 2 == number && *plan_.kill_at % 2 == 0) throw crashed{};
      auto result = run();
      if (*plan_.kill_at / 2 == number) throw crashed{};
      return result;
    }
    const auto what = faults_ ? random_() % 100 : 99;
    if (what < 4) throw lost();
    if (what < 6) throw crashed{};
    auto result = run();
    if (may_repeat && what < 10) {
      time_passes();
      result = run();
    }
    time_passes();
    if (what >= 10 && what < 16) throw lost();
    if (what >= 16 && what < 19) throw crashed{};
    return result;
  }

  simulation_plan plan_;
  std::mt19937_64 random_;
  std::shared_ptr<virtual_clock> clock_ = std::make_shared<virtual_clock>();
  std::shared_ptr<outbox_backend> model_;
  bool recurred_twice_ = false;
  bool faults_;
  std::size_t calls_ = 0;
  std::map<std::string, fence> fences_{};
};

}  // namespace holdfast::test
