#include "serve/api/sequence_cache.hpp"

#include <holdfast/error.hpp>

#include "sequence/definition.hpp"
#include "sequence/id_range.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A block may not be larger than the whole sequence, whose definition decides how large that is.
void limit_blocks(sequence_options& options) {
  const auto most = sequence::id_range(options).limit();
  if (auto* const fixed = std::get_if<fixed_blocks>(&options.blocks)) {
    fixed->size = std::min(fixed->size, most);
  } else if (auto* const adaptive = std::get_if<adaptive_blocks>(&options.blocks)) {
    adaptive->largest = std::min(adaptive->largest, most);
    adaptive->smallest = std::min(adaptive->smallest, most);
  }
}

}  // namespace

sequence_cache::~sequence_cache() {
  for (auto& [name, opened] : slots_) close(*opened.sequence);
}

std::shared_ptr<open_sequence> sequence_cache::find(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  const auto it = slots_.find(name);
  if (it == slots_.end()) return nullptr;
  uses_.splice(uses_.begin(), uses_, it->second.use);
  return it->second.sequence;
}

sequence_options sequence_cache::options_of(std::string_view name) {
  auto& service = shared_.find_sequences();
  check_sequence_name(name);
  auto options = service.options;
  if (const auto definition = service.blocks->definition(name))
    sequence::read_definition(*definition, options);
  limit_blocks(options);
  return options;
}

std::shared_ptr<open_sequence> sequence_cache::open(std::string_view name) {
  if (auto opened_before = find(name)) return opened_before;
  auto options = options_of(name);
  auto ids = shared_.find_sequences().database.sequence(name, options);
  auto opened = std::make_shared<open_sequence>(std::move(ids), std::move(options));
  std::shared_ptr<open_sequence> evicted;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto it = slots_.find(name); it != slots_.end()) {
      evicted = std::exchange(opened, it->second.sequence);  // another thread was faster
    } else {
      uses_.emplace_front(name);
      slots_.emplace(std::string(name), slot{.sequence = opened, .use = uses_.begin()});
      if (slots_.size() > most_) evicted = remove_slot(uses_.back());
    }
  }
  if (evicted) close(*evicted);
  return opened;
}

void sequence_cache::close(std::string_view name) {
  std::shared_ptr<open_sequence> removed;
  {
    const std::scoped_lock lock(mutex_);
    removed = remove_slot(name);
  }
  if (removed) close(*removed);
}

std::size_t sequence_cache::size() {
  const std::scoped_lock lock(mutex_);
  return slots_.size();
}

std::shared_ptr<open_sequence> sequence_cache::remove_slot(std::string_view name) {
  const auto it = slots_.find(name);
  if (it == slots_.end()) return nullptr;
  auto removed = std::move(it->second.sequence);
  const auto use = it->second.use;
  slots_.erase(it);
  uses_.erase(use);
  return removed;
}

/// Here and not in the destructor of the sequence: the last reference may be that of a loop thread,
/// which must not wait.
void sequence_cache::close(open_sequence& sequence) noexcept {
  sequence.closed = true;
  try {
    (void)sequence.ids.close(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The ids that it had leased are a gap.
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
