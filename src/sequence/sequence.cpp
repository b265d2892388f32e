#include <holdfast/sequence.hpp>

#include "base/deadline.hpp"
#include "sequence/root.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

using detail::sequence_core;
using steady = std::chrono::steady_clock;

namespace {

/// A draw that may wait ends with an id, or throws.
std::int64_t certain(std::optional<std::int64_t> id) {
  if (!id) throw error(errc::internal, "a draw with a deadline ended without an id");
  return *id;
}

steady::time_point deadline_of(const sequence_options& options) {
  return moment_after(steady::now(), std::min<std::chrono::milliseconds>(options.wait, longest_wait));
}

}  // namespace

sequence_handle::sequence_handle(std::shared_ptr<detail::sequence_root> root, std::int64_t most)
    : window_(root->places.take()), root_(std::move(root)), most_(most) {}

sequence_handle::sequence_handle(sequence_handle&& other) noexcept
    : window_(std::exchange(other.window_, nullptr)), root_(std::move(other.root_)), most_(other.most_), part_(other.part_) {}

sequence_handle& sequence_handle::operator=(sequence_handle&& other) noexcept {
  if (this != &other) {
    if (window_ != nullptr) root_->places.put(window_);
    window_ = std::exchange(other.window_, nullptr);
    root_ = std::move(other.root_);
    most_ = other.most_;
    part_ = other.part_;
  }
  return *this;
}

sequence_handle::~sequence_handle() {
  if (window_ != nullptr) root_->places.put(window_);
}

std::int64_t sequence_handle::take() {
  // As many as the last time, until the lease ends: then it is worth a look at what a fair part is now.
  std::uint64_t count = part_;
  const auto mine = root_->window().draw(count);
  std::optional<std::int64_t> first;
  if (mine.sure) {
    first = root_->window().id(mine.ticket);
  } else {
    first = root_->settle(mine.ticket, count, deadline_of(root_->config().options), true);
    part_ = std::min(static_cast<std::uint64_t>(most_), root_->core().share(root_->places.taken()));
  }
  const auto step = static_cast<std::uint64_t>(root_->config().range.increment());
  const auto begin = static_cast<std::uint64_t>(certain(first));
  window_->step = step;
  window_->end = begin + count * step;
  window_->next = begin + step;
  return static_cast<std::int64_t>(begin);
}

sequence::sequence(std::shared_ptr<detail::sequence_root> root) : window_(&root->window()), root_(std::move(root)) {}
sequence::sequence(sequence&& other) noexcept = default;

sequence& sequence::operator=(sequence&& other) noexcept {
  if (this != &other) {
    const sequence done(std::move(*this));
    window_ = other.window_;
    root_ = std::move(other.root_);
  }
  return *this;
}

sequence::~sequence() {
  if (!root_) return;
  // A child that never used it has nothing to close.
  if (auto* core = root_->core_if_made()) (void)core->close(steady::now() + std::chrono::seconds(1));
}

std::optional<std::int64_t> sequence::slow_next(std::uint64_t drawn) {
  std::int64_t id = 0;
  std::uint64_t count = 1;
  const auto deadline = deadline_of(root_->config().options);
  return root_->core().settle(drawn, count, deadline, false, id) == sequence_core::answer::owned ? std::optional(id) : std::nullopt;
}

std::int64_t sequence::next(steady::time_point deadline) {
  std::uint64_t count = 1;
  return certain(root_->draw(count, deadline, false));
}

std::optional<std::int64_t> sequence::try_next() {
  std::uint64_t count = 1;
  return root_->draw(count, std::nullopt, false);
}

sequence_block sequence::next_n(std::int64_t count) { return next_n(count, deadline_of(root_->config().options)); }

sequence_block sequence::next_n(std::int64_t count, steady::time_point deadline) {
  if (count < 1 || count > largest_block)
    throw error(errc::invalid_argument, "so many ids cannot be drawn at once: 1 to 2147483648, not " + std::to_string(count));
  const auto& config = root_->config();
  if (config.options.cycle && count > config.range.limit())
    throw error(errc::out_of_range, "the sequence '" + config.name + "' has fewer ids than are wanted at once");
  auto drawn = static_cast<std::uint64_t>(count);
  const auto first = certain(root_->draw(drawn, deadline, false));
  const auto step = config.range.increment();
  return {first, static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + (drawn - 1) * static_cast<std::uint64_t>(step)), step};
}

std::int64_t sequence::next_in_transaction(join::transaction& joined) {
  const auto& config = root_->config();
  const auto granted = root_->core().store().allocate_in(
      joined, {.name = config.name, .count = 1, .limit = config.range.limit(), .cycle = config.options.cycle});
  if (!granted.block.has_next()) throw detail::exhausted(config.name);
  return config.range.id(granted.block.first());
}

sequence_handle sequence::handle(std::int64_t most) {
  if (most < 1 || most > largest_block) throw error(errc::invalid_argument, "a handle takes 1 to 2147483648 ids at once");
  return {root_, most};
}

std::optional<std::int64_t> sequence::peek() const {
  const auto now = root_->core().store().peek(root_->config().name);
  if (!now || now->last == 0) return std::nullopt;
  return root_->config().range.id(std::min(now->last, root_->config().range.limit()));
}

std::optional<std::int64_t> sequence::position() const { return root_->core().position(); }

std::optional<std::int64_t> sequence::ensure_at_least(std::int64_t id) {
  const auto& config = root_->config();
  const auto now = root_->core().store().ensure_at_least(config.name, config.range.ordinal_up_to(id));
  if (now.last == 0) return std::nullopt;
  return config.range.id(std::min(now.last, config.range.limit()));
}

counter_state sequence::counter() const { return root_->core().store().peek(root_->config().name).value_or(counter_state{}); }

void sequence::reset_unsafe(std::int64_t next_id, counter_state expected) {
  const auto& config = root_->config();
  const std::int64_t before = config.range.ordinal_of(next_id) - 1;
  auto& core = root_->core();
  if (!core.store().reset(config.name, before, expected)) {
    throw error(errc::duplicate, "the counter of '" + config.name +
                                     "' is not as expected: it was used, or reset, meanwhile; look again (counter()) and decide again");
  }
  core.invalidate();
}

void sequence::invalidate() { root_->core().invalidate(); }
sequence_stats sequence::stats() const { return root_->core().stats(); }
const std::string& sequence::name() const noexcept { return root_->config().name; }
sequence_close_report sequence::close(steady::time_point deadline) { return root_->core().close(deadline); }

sequence_source::sequence_source(std::shared_ptr<block_store> store, sequence_environment around) {
  if (!store) throw error(errc::invalid_argument, "a source of sequences needs a block store");
  root_ = std::make_shared<detail::source_root>(std::move(store), std::move(around));
}

sequence sequence_source::sequence(std::string_view name, sequence_options options) const {
  check_sequence_name(name);
  detail::check_sequence_options(options);
  const detail::id_range range(options);
  try {
    root_->core().settings->run();
  } catch (const error& e) {
    if (!e.transient()) throw;  // nobody there to ask: the first refill asks again
  }
  auto config = std::make_shared<const detail::sequence_config>(
      detail::sequence_config{.name = std::string(name), .options = std::move(options), .range = range});
  return holdfast::sequence(std::make_shared<detail::sequence_root>(std::move(config), root_, root_->around().metrics));
}

block_store& sequence_source::store() const { return *root_->core().store; }

}  // namespace HOLDFAST_NAMESPACE
