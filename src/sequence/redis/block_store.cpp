#include "sequence/redis/block_store.hpp"

#include "sequence/redis/counters.hpp"
#include "sequence/redis/fence.hpp"
#include "sequence/redis/scripts.hpp"
#include "sequence/redis/super_block_allocator.hpp"
#include "sequence/redis/unsafe_settings.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

using holdfast::redis::command;
using holdfast::redis::reply;
using std::chrono::milliseconds;

/// Asks how many replicas have confirmed the commands before it.
command confirmation(const wait_fence& fence, milliseconds timeout) {
  return fence.on_disk ? holdfast::redis::wait_for_disk(1, fence.replicas, timeout)
                       : holdfast::redis::wait_for_replicas(fence.replicas, timeout);
}

/// The confirmations of one pipeline wait one after the other, so they share the time. Each gets
/// enough for a round trip.
milliseconds share_of_timeout(const wait_fence& fence, std::size_t requests) {
  constexpr milliseconds round_trip{50};
  return std::max(fence.longest / static_cast<std::int64_t>(requests),
                  std::min(fence.longest, round_trip));
}

/// Throws errc::unavailable (transient) if too few replicas confirmed. `detail`: what they should
/// have confirmed, and what follows.
void check_confirmed(const wait_fence& fence, const reply& reply, const std::string& detail) {
  std::int64_t replicas = 0;
  bool on_master = true;
  if (fence.on_disk) {
    on_master = reply.checked().elements().at(0).integer() == 1;
    replicas = reply.elements().at(1).integer();
  } else {
    replicas = reply.checked().integer();
  }
  if (on_master && std::cmp_greater_equal(replicas, fence.replicas)) return;
  throw error(errc::unavailable,
              std::to_string(replicas) + " of " + std::to_string(fence.replicas) +
                  " replicas confirmed " + detail + " when they are connected",
              {.transient = true});
}

class redis_block_store final : public block_store {
 public:
  explicit redis_block_store(redis_block_store_options options)
      : counters_(std::move(options.client), options.prefix), fence_(std::move(options.fence)) {
    check_fence(fence_);
    if (super_ != nullptr) allocator_.emplace(counters_, *super_, fence_definition(fence_));
  }

  /// A node of a Cluster that hangs delays only its own counters.
  std::string failure_domain(std::string_view name) const noexcept override {
    try {
      return counters_.node_of(name);
    } catch (...) {
      return {};
    }
  }

  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    for (const auto& request : requests) check_block_request(request);
    if (requests.empty()) return {};
    auto grants = allocator_ ? allocator_->allocate(requests) : allocate_from_counters(requests);
    if (const auto problem = grants.front().problem; problem && grants.size() == 1)
      throw error(*problem);
    return grants;
  }

  std::optional<counter_state> peek(std::string_view name) override {
    check_sequence_name(name);
    const auto counter = valid_counter(client().call(peek_command(name)));
    if (counter || super_ == nullptr) return counter;
    return super_->source->peek(name);
  }

  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    check_sequence_name(name);
    ordinal = std::max<std::int64_t>(ordinal, 0);
    if (super_ == nullptr) return raise(name, ordinal);
    const auto source = super_->source->ensure_at_least(name, ordinal);
    return counter_state_of(
        client().call(counters_.command(redis::scripts().raise_super_block, name)
                          .arg(ordinal)
                          .arg(source.last)
                          .arg(source.epoch)
                          .idempotent()));
  }

  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    check_sequence_name(name);
    const counter_state replacement{.last = ordinal, .epoch = expected.epoch + 1};
    if (super_ == nullptr) return replace(name, expected, replacement, false);
    const auto source = super_->source->peek(name);
    if (!source || source->epoch != expected.epoch) return false;
    if (!valid_counter(client().call(peek_command(name))))
      return super_->source->reset(name, ordinal, expected);
    // Redis first, so that it grants nothing more of the old super-block. A failure between the two
    // steps only costs a gap.
    const auto forgotten = client().call(
        counters_.command(redis::scripts().forget, name).arg(expected.last).arg(expected.epoch));
    return forgotten.integer() == 1 && super_->source->reset(name, ordinal, *source);
  }

  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    check_sequence_name(name);
    if (!replace(name, granted, {.last = last_used, .epoch = granted.epoch}, bound_to_server()))
      return false;
    if (allocator_) allocator_->forget_granted(name);
    return true;
  }

  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    std::vector<named_counter> counters;
    if (super_ != nullptr) {
      counters = super_->source->list(limit, after);
    } else {
      for (auto& name : counters_.names()) {
        if (counters.size() == limit) break;
        if (name > after) counters.push_back({.name = std::move(name)});
      }
    }
    std::vector<command> commands;
    commands.reserve(counters.size());
    for (const auto& counter : counters) commands.push_back(peek_command(counter.name));
    const auto replies = client().pipeline(commands);
    for (std::size_t i = 0; i < counters.size(); ++i) {
      if (const auto state = valid_counter(replies[i])) counters[i].state = *state;
    }
    return counters;
  }

  std::optional<std::string> definition(std::string_view name) override {
    check_sequence_name(name);
    auto stored =
        client().call(counters_.command(redis::scripts().definition, name).idempotent()).text();
    return stored.empty() ? std::nullopt : std::optional(std::move(stored));
  }

  std::string complete_definition(std::string_view definition) const override {
    return definition.empty() ? std::string()
                              : std::string(definition) + " " + fence_definition(fence_);
  }

  bool redefine(std::string_view name, std::string_view definition, std::int64_t ordinal,
                counter_state expected, std::string_view expected_definition) override {
    check_sequence_name(name);
    if (ordinal < expected.last)
      throw error(errc::invalid_argument, "a new definition cannot set the counter back");
    // The source first: if the second step fails, no user of the old definition gets another
    // super-block, and the change can be repeated.
    if (super_ != nullptr && !redefine_source(name, definition, ordinal)) return false;
    auto command = counters_.command(redis::scripts().redefine, name)
                       .arg(expected.last)
                       .arg(expected.epoch)
                       .arg(expected_definition)
                       .arg(ordinal)
                       .arg(complete_definition(definition));
    add_clock(command);
    const auto changed = client().call(command).integer();
    if (changed < 0)
      throw error(errc::out_of_range,
                  "the counter would be ahead of the clock (clock_fence), and grant nothing for a "
                  "long time; choose a start beyond the last id in use",
                  {.path = "start"});
    // The replicas must know it, as for ensure_at_least.
    if (changed == 1 && super_ == nullptr) (void)raise(name, ordinal);
    return changed == 1;
  }

  std::vector<std::string> missing_objects() override {
    return super_ != nullptr ? super_->source->missing_objects() : std::vector<std::string>();
  }

  std::vector<std::string> unsafe_settings() override {
    return unsafe_redis_settings(client(), fence_);
  }

 private:
  [[nodiscard]] const holdfast::redis::client& client() const noexcept {
    return counters_.client();
  }
  /// Whether a counter belongs to the server that wrote it, until that restarts.
  [[nodiscard]] bool bound_to_server() const noexcept {
    return super_ != nullptr || std::holds_alternative<clock_fence>(fence_);
  }

  [[nodiscard]] command peek_command(std::string_view name) const {
    auto command = counters_.command(redis::scripts().peek, name).idempotent();
    add_clock(command);
    return command;
  }
  /// clock_fence: the arguments of `last_by_clock` in counter.lua. Nothing for other fences.
  void add_clock(command& command) const {
    if (const auto* clock = std::get_if<clock_fence>(&fence_))
      command.arg(clock->rate)
          .arg(clock->origin.time_since_epoch().count())
          .arg(std::chrono::microseconds(clock->max_skew).count());
  }

  /// Changes the definition in the database that grants the super-blocks, and keeps it ahead.
  [[nodiscard]] bool redefine_source(std::string_view name, std::string_view definition,
                                     std::int64_t ordinal) const {
    auto& source = *super_->source;
    const auto stored = source.definition(name);
    if (stored && *stored != source.complete_definition(definition)) {
      const auto counter = source.peek(name);
      if (!counter ||
          !source.redefine(name, definition, std::max(counter->last, ordinal), *counter, *stored))
        return false;
    }
    (void)source.ensure_at_least(name, ordinal);
    return true;
  }
  /// The counter in a reply of peek. Nothing if it does not exist, or if it has a super-block of
  /// another server.
  [[nodiscard]] std::optional<counter_state> valid_counter(const reply& reply) const {
    if (reply.checked().is_nil()) return std::nullopt;
    if (super_ != nullptr && reply.elements().at(2).integer() == 0) return std::nullopt;
    return counter_state_of(reply);
  }

  /// May be repeated after a lost reply: the block of the first attempt is never used, and the
  /// second attempt gets another one.
  [[nodiscard]] command allocate_command(const block_request& request) const {
    if (const auto* clock = std::get_if<clock_fence>(&fence_)) {
      if (request.cycle)
        throw error(errc::invalid_argument,
                    "a sequence that cycles cannot follow the clock; choose another fence");
      return counters_.command(redis::scripts().allocate_by_clock, request.name)
          .arg(request.count)
          .arg(request.limit)
          .arg(clock->rate)
          .arg(clock->origin.time_since_epoch().count())
          .arg(std::chrono::microseconds(clock->max_skew).count())
          .arg(complete_definition(request.definition))
          .idempotent();
    }
    return counters_.command(redis::scripts().allocate, request.name)
        .arg(request.count)
        .arg(request.limit)
        .arg(request.cycle ? 1 : 0)
        .arg(complete_definition(request.definition))
        .idempotent();
  }

  /// All fences but super_blocks: one pipeline, with a confirmation after each block for
  /// wait_fence.
  [[nodiscard]] std::vector<block_grant> allocate_from_counters(
      std::span<const block_request> requests) const {
    const auto* wait = std::get_if<wait_fence>(&fence_);
    const auto timeout =
        wait != nullptr ? share_of_timeout(*wait, requests.size()) : milliseconds::zero();
    std::vector<command> commands;
    for (const auto& request : requests) {
      commands.push_back(allocate_command(request));
      if (wait != nullptr) commands.push_back(confirmation(*wait, timeout));
    }
    const auto replies = client().pipeline(commands);
    const std::size_t replies_per_request = wait != nullptr ? 2 : 1;
    std::vector<block_grant> grants;
    for (std::size_t i = 0; i < replies.size(); i += replies_per_request) {
      grants.push_back(grant_or_problem([&] {
        const auto& request = requests[i / replies_per_request];
        auto grant =
            block_grant_of(replies.at(i), request.name, complete_definition(request.definition));
        if (wait != nullptr)
          check_confirmed(*wait, replies.at(i + 1),
                          "a block within " + std::to_string(timeout.count()) +
                              " ms; it is abandoned, try again");
        return grant;
      }));
    }
    return grants;
  }

  [[nodiscard]] counter_state raise(std::string_view name, std::int64_t ordinal) const {
    auto command = counters_.command(redis::scripts().raise, name).arg(ordinal).idempotent();
    add_clock(command);
    if (const auto* wait = std::get_if<wait_fence>(&fence_))
      return raise_and_confirm(command, *wait);
    const auto reply = client().call(command);
    // After a failover clock_fence continues above the time, and knows nothing of a counter that
    // was raised beyond it. So the replicas must know it.
    const auto replicas = reply.elements().at(2).integer();
    if (replicas > 0 && std::holds_alternative<clock_fence>(fence_))
      return raise_and_confirm(command, {.replicas = static_cast<std::size_t>(replicas)});
    return counter_state_of(reply);
  }

  [[nodiscard]] counter_state raise_and_confirm(const command& raise_command,
                                                const wait_fence& wait) const {
    const command commands[]{raise_command, confirmation(wait, wait.longest)};
    const auto replies = client().pipeline(commands);
    const auto raised = counter_state_of(replies.front().checked());
    check_confirmed(wait, replies.at(1),
                    "within " + std::to_string(wait.longest.count()) +
                        " ms that the counter was raised; a failover may forget it, so try again");
    return raised;
  }

  [[nodiscard]] bool replace(std::string_view name, counter_state expected,
                             counter_state replacement, bool same_server_only) const {
    return client()
               .call(counters_.command(redis::scripts().replace, name)
                         .arg(expected.last)
                         .arg(expected.epoch)
                         .arg(replacement.last)
                         .arg(replacement.epoch)
                         .arg(same_server_only ? 1 : 0))
               .integer() == 1;
  }

  const redis_counters counters_;
  const sequence_fence fence_;
  const super_blocks* const super_ = std::get_if<super_blocks>(&fence_);
  std::optional<super_block_allocator> allocator_{};  // if the fence is super_blocks
};

}  // namespace

std::shared_ptr<block_store> make_redis_block_store(redis_block_store_options options) {
  return std::make_shared<redis_block_store>(std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
