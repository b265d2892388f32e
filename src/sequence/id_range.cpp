#include "sequence/id_range.hpp"

#include <holdfast/error.hpp>
#include <holdfast/sequence/block_store.hpp>

#include <string>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
  throw error(errc::invalid_argument, message, {.path = path});
}

/// How many whole increments are between two ids.
std::uint64_t steps_between(std::int64_t first, std::int64_t last, std::int64_t increment) {
  const auto low = static_cast<std::uint64_t>(increment > 0 ? first : last);
  const auto high = static_cast<std::uint64_t>(increment > 0 ? last : first);
  const auto width = increment > 0 ? static_cast<std::uint64_t>(increment)
                                   : std::uint64_t{0} - static_cast<std::uint64_t>(increment);
  return (high - low) / width;
}

void check_block_size(std::int64_t size, const std::string& path) {
  if (size < 1 || size > largest_block)
    refuse(path, "a block has 1 to 2147483648 ids, not " + std::to_string(size));
}

}  // namespace

id_range::id_range(const sequence_options& options)
    : start_(options.start), increment_(options.increment) {
  if (increment_ == 0)
    refuse("increment", "the increment of a sequence cannot be 0: every id would be the same");
  if (options.min > options.max)
    refuse("min", "the lowest id of a sequence is above its highest one");
  if (start_ < options.min || start_ > options.max)
    refuse("start", "the first id of a sequence must be between its lowest and its highest");
  const auto steps = steps_between(start_, increment_ > 0 ? options.max : options.min, increment_);
  limit_ = steps >= static_cast<std::uint64_t>(last_ordinal) ? last_ordinal
                                                             : static_cast<std::int64_t>(steps) + 1;
}

std::int64_t id_range::ordinal_up_to(std::int64_t id) const {
  if (increment_ > 0 ? id < start_ : id > start_) return 0;
  const auto steps = steps_between(start_, id, increment_);
  if (steps >= static_cast<std::uint64_t>(limit_))
    throw error(errc::out_of_range,
                "the id " + std::to_string(id) + " is beyond the end of the sequence");
  return static_cast<std::int64_t>(steps) + 1;
}

std::int64_t id_range::ordinal_of(std::int64_t id) const {
  const bool before_start = increment_ > 0 ? id < start_ : id > start_;
  if (!before_start) {
    const auto steps = steps_between(start_, id, increment_);
    if (steps < static_cast<std::uint64_t>(limit_) &&
        this->id(static_cast<std::int64_t>(steps) + 1) == id)
      return static_cast<std::int64_t>(steps) + 1;
  }
  throw error(
      errc::invalid_argument,
      std::to_string(id) + " is not an id of this sequence: see its start, increment and limits");
}

void check_options(const sequence_options& options) {
  const id_range range(options);
  if (const auto* fixed = std::get_if<fixed_blocks>(&options.blocks)) {
    check_block_size(fixed->size, "blocks.size");
    if (fixed->size > range.limit())
      refuse("blocks.size", "a block would be larger than the whole sequence");
  }
  if (const auto* adaptive = std::get_if<adaptive_blocks>(&options.blocks)) {
    check_block_size(adaptive->smallest, "blocks.smallest");
    check_block_size(adaptive->largest, "blocks.largest");
    if (adaptive->smallest > adaptive->largest)
      refuse("blocks.smallest", "the smallest block is larger than the largest");
    if (adaptive->target <= std::chrono::milliseconds::zero())
      refuse("blocks.target", "the target time of a block must be positive");
  }
  if (options.wait < std::chrono::milliseconds::zero()) refuse("wait", "wait cannot be negative");
  if (!(options.low_water >= 0.0 && options.low_water <= 1.0))
    refuse("low_water", "low_water is a fraction of all ids: 0 to 1");
  if (options.cycle && options.give_back)
    refuse("give_back", "a sequence that cycles cannot give ids back");
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
