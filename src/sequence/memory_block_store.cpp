#include <holdfast/error.hpp>
#include <holdfast/sequence/block_store.hpp>

#include "base/process_mark.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

class memory_block_store final : public block_store {
 public:
  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    for (const auto& each : requests) check_block_request(each);
    const auto lock = enter();
    std::vector<block_grant> granted;
    granted.reserve(requests.size());
    for (const auto& each : requests) granted.push_back(grant(each));
    return granted;
  }

  std::optional<counter_state> peek(std::string_view name) override {
    check_sequence_name(name);
    const auto lock = enter();
    const auto found = counters_.find(name);
    if (found == counters_.end()) return std::nullopt;
    return found->second;
  }

  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    check_sequence_name(name);
    const auto lock = enter();
    counter_state& held = counter(name);
    held.last = std::max(held.last, ordinal);
    return held;
  }

  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    check_sequence_name(name);
    const auto lock = enter();
    const auto found = counters_.find(name);
    if (found == counters_.end() || found->second != expected) return false;
    found->second = {.last = ordinal, .epoch = expected.epoch + 1};
    return true;
  }

  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    check_sequence_name(name);
    const auto lock = enter();
    const auto found = counters_.find(name);
    if (found == counters_.end() || found->second != granted) return false;
    found->second.last = last_used;
    return true;
  }

  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    const auto lock = enter();
    std::vector<named_counter> found;
    for (auto at = counters_.upper_bound(after); at != counters_.end() && found.size() < limit; ++at)
      found.push_back({.name = at->first, .state = at->second});
    return found;
  }

  std::vector<std::string> unsafe_settings() override { return {}; }

  std::shared_ptr<block_store> for_child() const override { refuse_child(); }

 private:
  [[noreturn]] static void refuse_child() {
    throw error(errc::invalid_argument,
                "the sequences of this memory belong to the parent process; use a database to share them with a child");
  }

  [[nodiscard]] std::unique_lock<std::mutex> enter() {
    if (made_here_.inherited()) refuse_child();
    return std::unique_lock(mutex_);
  }

  counter_state& counter(std::string_view name) {
    const auto found = counters_.find(name);
    return found != counters_.end() ? found->second : counters_.emplace(std::string(name), counter_state{}).first->second;
  }

  block_grant grant(const block_request& wanted) {
    counter_state& held = counter(wanted.name);
    if (held.last >= wanted.limit && wanted.cycle) held = {.last = 0, .epoch = held.epoch + 1};
    // Written so that nothing can overflow: last never exceeds the limit by adding.
    const std::int64_t count = held.last >= wanted.limit ? 0 : std::min(wanted.count, wanted.limit - held.last);
    const std::int64_t before = std::exchange(held.last, held.last + count);
    if (count == 0) return {.block = {}, .epoch = held.epoch};
    return {.block = sequence_block(before + 1, held.last), .epoch = held.epoch};
  }

  const process_mark made_here_{};
  std::mutex mutex_{};
  std::map<std::string, counter_state, std::less<>> counters_{};
};

}  // namespace

std::shared_ptr<block_store> make_memory_block_store() { return std::make_shared<memory_block_store>(); }

}  // namespace HOLDFAST_NAMESPACE
