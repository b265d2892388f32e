#include <holdfast/sequence.hpp>

#include "sequence/definition.hpp"
#include "sequence/handle.hpp"
#include "sequence/process_check.hpp"
#include "sequence/sequence_state.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

using detail::sequence::sequence_state;

namespace {

/// The id of the last ordinal that a counter granted.
std::optional<std::int64_t> last_id(const detail::sequence::id_range& range, std::int64_t last) {
  if (last == 0) return std::nullopt;
  return range.id(std::min(last, range.limit()));
}

}  // namespace

// ---- sequence_handle

sequence_handle::sequence_handle(std::unique_ptr<detail::sequence::handle> handle)
    : window_(&handle->window()), handle_(std::move(handle)) {}
sequence_handle::sequence_handle(sequence_handle&& other) noexcept
    : window_(std::exchange(other.window_, nullptr)), handle_(std::move(other.handle_)) {}
sequence_handle& sequence_handle::operator=(sequence_handle&& other) noexcept {
  handle_ = std::move(other.handle_);
  window_ = std::exchange(other.window_, nullptr);
  return *this;
}
sequence_handle::~sequence_handle() = default;

std::int64_t sequence_handle::refill() { return handle_->refill(); }

// ---- sequence. A draw with a deadline returns ids or throws, so value() is safe.
// NOLINTBEGIN(bugprone-unchecked-optional-access)

sequence::sequence(std::shared_ptr<sequence_state> state)
    : window_(&state->window()), state_(std::move(state)) {}
sequence::sequence(sequence&& other) noexcept = default;

sequence& sequence::operator=(sequence&& other) noexcept {
  if (this != &other) {
    const sequence closed_now(std::move(*this));
    window_ = other.window_;
    state_ = std::move(other.state_);
  }
  return *this;
}

sequence::~sequence() {
  // A forked child must not take the locks of its parent.
  if (state_ && !state_->inherited_by_fork())
    (void)state_->close(std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

std::int64_t sequence::slow_next(std::uint64_t ticket) {
  return state_->draw_slowly(ticket, {.deadline = state_->default_deadline()}).value().first;
}

std::int64_t sequence::next(std::chrono::steady_clock::time_point deadline) {
  return state_->draw({.deadline = deadline}).value().first;
}

std::optional<std::int64_t> sequence::try_next() {
  const auto ids = state_->draw({});
  return ids ? std::optional(ids->first) : std::nullopt;
}

sequence_block sequence::next_n(std::int64_t count) {
  return next_n(count, state_->default_deadline());
}

sequence_block sequence::next_n(std::int64_t count,
                                std::chrono::steady_clock::time_point deadline) {
  if (count < 1 || count > largest_block)
    throw error(errc::invalid_argument,
                "next_n draws 1 to 2147483648 ids at once, not " + std::to_string(count));
  const auto& config = state_->config();
  if (config.options.cycle && count > config.range.limit())
    throw error(errc::out_of_range, "the sequence '" + config.name + "' has only " +
                                        std::to_string(config.range.limit()) + " ids, not " +
                                        std::to_string(count));
  const auto ids =
      state_->draw({.count = static_cast<std::uint64_t>(count), .deadline = deadline}).value();
  const auto step = config.range.increment();
  const auto last =
      static_cast<std::uint64_t>(ids.first) + (ids.count - 1) * static_cast<std::uint64_t>(step);
  return {ids.first, static_cast<std::int64_t>(last), step};
}

std::int64_t sequence::next_in_transaction(join::transaction& transaction) {
  const auto& config = state_->config();
  const auto grant = state_->store().allocate_in(transaction, {.name = config.name,
                                                               .count = 1,
                                                               .limit = config.range.limit(),
                                                               .cycle = config.options.cycle,
                                                               .definition = config.definition});
  if (!grant.block.has_next()) throw state_->exhausted_error();
  return config.range.id(grant.block.first());
}

sequence_handle sequence::handle(std::int64_t max_ids) {
  state_->check_process();
  if (max_ids < 1 || max_ids > largest_block)
    throw error(errc::invalid_argument, "a handle takes 1 to 2147483648 ids at once");
  return sequence_handle(std::make_unique<detail::sequence::handle>(state_, max_ids));
}

std::optional<std::int64_t> sequence::peek() const {
  return last_id(state_->config().range, counter().last);
}

std::optional<std::int64_t> sequence::position() const { return state_->position(); }

std::optional<std::int64_t> sequence::ensure_at_least(std::int64_t id) {
  const auto& config = state_->config();
  const std::int64_t ordinal = config.range.ordinal_up_to(id);
  const auto counter = state_->defined_store().ensure_at_least(config.name, ordinal);
  state_->set_floor(ordinal);
  return last_id(config.range, counter.last);
}

counter_state sequence::counter() const {
  return state_->defined_store().peek(state_->config().name).value_or(counter_state{});
}

std::optional<std::string> sequence::definition() const {
  return state_->store().definition(state_->config().name);
}

void sequence::redefine(std::string_view expected) {
  const auto& config = state_->config();
  auto& store = state_->store();
  sequence_options before;
  detail::sequence::read_definition(expected, before);
  // A block that is granted meanwhile changes the counter, and the next attempt sees it.
  constexpr int max_attempts = 10;
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    const auto stored = store.definition(config.name);
    if (stored != expected) break;
    const auto counter = store.peek(config.name);
    if (!counter) break;
    const auto last =
        detail::sequence::last_after_redefinition(before, config.options, counter->last);
    if (!store.redefine(config.name, config.definition, last, *counter, expected)) continue;
    state_->invalidate();
    return;
  }
  throw error(errc::duplicate,
              "the definition of the sequence '" + config.name +
                  "' was not changed: it is not as expected, or the counter was last used on "
                  "another server; read it again with definition(), draw one id with the old "
                  "options, and decide again");
}

void sequence::reset_unsafe(std::int64_t next_id, counter_state expected) {
  const auto& config = state_->config();
  const std::int64_t last = config.range.ordinal_of(next_id) - 1;
  if (!state_->defined_store().reset(config.name, last, expected))
    throw error(errc::duplicate, "the counter of '" + config.name +
                                     "' is not as expected: it was used or reset meanwhile; read "
                                     "it again with counter(), and decide again");
  state_->set_floor(0);
  state_->invalidate();
}

void sequence::invalidate() { state_->invalidate(); }
sequence_stats sequence::stats() const { return state_->stats(); }
const std::string& sequence::name() const noexcept { return state_->config().name; }
sequence_close_report sequence::close(std::chrono::steady_clock::time_point deadline) {
  return state_->close(deadline);
}

// NOLINTEND(bugprone-unchecked-optional-access)

// ---- sequence_source

sequence_source::sequence_source(std::shared_ptr<block_store> store,
                                 const sequence_environment& environment) {
  if (!store) throw error(errc::invalid_argument, "a source of sequences needs a block store");
  source_ = detail::sequence::make_source(std::move(store), environment);
}

sequence sequence_source::sequence(std::string_view name, sequence_options options) const {
  source_->check_process();
  check_sequence_name(name);
  detail::sequence::check_options(options);
  const detail::sequence::id_range range(options);
  auto definition = detail::sequence::definition_of(options);
  return holdfast::sequence(detail::sequence::make_process_bound<sequence_state>(
      detail::sequence::sequence_config{.name = std::string(name),
                                        .options = std::move(options),
                                        .range = range,
                                        .definition = std::move(definition)},
      source_));
}

block_store& sequence_source::store() const {
  source_->check_process();
  return *source_->store;
}

}  // namespace HOLDFAST_NAMESPACE
