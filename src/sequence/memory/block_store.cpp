// Counters in the memory of the process.

#include <holdfast/sequence/block_store.hpp>

#include "base/fork_detector.hpp"
#include "sequence/definition.hpp"
#include "sequence/process_check.hpp"

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
    for (const auto& request : requests) check_block_request(request);
    const auto lock = lock_counters();
    std::vector<block_grant> grants;
    grants.reserve(requests.size());
    for (const auto& request : requests) grants.push_back(grant(request));
    if (grants.size() == 1) {
      const auto& problem = grants.front().problem;
      if (problem) throw error(*problem);
    }
    return grants;
  }

  std::optional<counter_state> peek(std::string_view name) override {
    check_sequence_name(name);
    const auto lock = lock_counters();
    const auto it = counters_.find(name);
    if (it == counters_.end()) return std::nullopt;
    return it->second.state;
  }

  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    check_sequence_name(name);
    const auto lock = lock_counters();
    counter_state& counter = find_or_create(name).state;
    counter.last = std::max(counter.last, ordinal);
    return counter;
  }

  std::optional<std::string> definition(std::string_view name) override {
    const auto lock = lock_counters();
    const auto it = counters_.find(name);
    if (it == counters_.end() || it->second.definition.empty()) return std::nullopt;
    return it->second.definition;
  }

  bool redefine(std::string_view name, std::string_view definition, std::int64_t ordinal,
                counter_state expected, std::string_view expected_definition) override {
    if (ordinal < expected.last)
      throw error(errc::invalid_argument, "a new definition cannot set the counter back");
    const auto lock = lock_counters();
    const auto it = counters_.find(name);
    if (it == counters_.end() || it->second.state != expected ||
        it->second.definition != expected_definition)
      return false;
    it->second = {.state = {.last = ordinal, .epoch = expected.epoch},
                  .definition = std::string(definition)};
    return true;
  }

  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    return replace(name, expected, {.last = ordinal, .epoch = expected.epoch + 1});
  }

  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    return replace(name, granted, {.last = last_used, .epoch = granted.epoch});
  }

  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    const auto lock = lock_counters();
    std::vector<named_counter> counters;
    for (auto it = counters_.upper_bound(after); it != counters_.end() && counters.size() < limit;
         ++it)
      counters.push_back({.name = it->first, .state = it->second.state});
    return counters;
  }

  std::vector<std::string> unsafe_settings() override { return {}; }

 private:
  struct memory_counter {
    counter_state state{};
    std::string definition{};
  };

  [[nodiscard]] std::unique_lock<std::mutex> lock_counters() {
    detail::sequence::check_process(fork_detector_);
    return std::unique_lock(mutex_);
  }

  memory_counter& find_or_create(std::string_view name) {
    const auto it = counters_.find(name);
    if (it != counters_.end()) return it->second;
    return counters_.emplace(std::string(name), memory_counter{}).first->second;
  }

  bool replace(std::string_view name, counter_state expected, counter_state replacement) {
    check_sequence_name(name);
    const auto lock = lock_counters();
    const auto it = counters_.find(name);
    if (it == counters_.end() || it->second.state != expected) return false;
    it->second.state = replacement;
    return true;
  }

  block_grant grant(const block_request& request) {
    memory_counter& stored = find_or_create(request.name);
    if (!request.definition.empty()) {
      if (stored.definition.empty()) stored.definition = request.definition;
      if (stored.definition != request.definition)
        return {.problem = detail::sequence::definition_mismatch(request.name, stored.definition,
                                                                 request.definition)};
    }
    counter_state& counter = stored.state;
    if (counter.last >= request.limit) {
      if (!request.cycle) return {.block = {}, .epoch = counter.epoch};
      counter = {.last = 0, .epoch = counter.epoch + 1};
    }
    const std::int64_t first = counter.last + 1;
    counter.last += std::min(request.count, request.limit - counter.last);  // cannot overflow
    return {.block = sequence_block(first, counter.last), .epoch = counter.epoch};
  }

  const detail::fork_detector fork_detector_{};
  std::mutex mutex_{};
  std::map<std::string, memory_counter, std::less<>> counters_{};
};

}  // namespace

std::shared_ptr<block_store> make_memory_block_store() {
  return std::make_shared<memory_block_store>();
}

}  // namespace HOLDFAST_NAMESPACE
