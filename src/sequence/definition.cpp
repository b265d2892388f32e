#include "sequence/definition.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

std::int64_t integer_field(std::string_view definition, std::string_view field) {
  const auto text = definition_field(definition, field).value_or("");
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || text.empty())
    throw error(errc::malformed, "the definition of a sequence cannot be read: '" +
                                     std::string(definition) + "' has no integer '" +
                                     std::string(field) + "'; it was changed by hand");
  return value;
}

}  // namespace

std::string definition_of(const sequence_options& options) {
  const id_range range(options);
  return "start=" + std::to_string(options.start) +
         " increment=" + std::to_string(options.increment) +
         " end=" + std::to_string(range.id(range.limit())) +
         " cycle=" + (options.cycle ? "yes" : "no");
}

std::optional<std::string> definition_field(std::string_view definition, std::string_view field) {
  for (std::size_t begin = 0; begin < definition.size();) {
    const std::size_t end = std::min(definition.find(' ', begin), definition.size());
    const auto part = definition.substr(begin, end - begin);
    const auto equals = part.find('=');
    if (equals != std::string_view::npos && part.substr(0, equals) == field)
      return std::string(part.substr(equals + 1));
    begin = end + 1;
  }
  return std::nullopt;
}

void read_definition(std::string_view definition, sequence_options& options) {
  options.start = integer_field(definition, "start");
  options.increment = integer_field(definition, "increment");
  const std::int64_t end = integer_field(definition, "end");
  options.min = options.increment > 0 ? std::numeric_limits<std::int64_t>::min() : end;
  options.max = options.increment > 0 ? end : std::numeric_limits<std::int64_t>::max();
  options.cycle = definition_field(definition, "cycle") == "yes";
}

error definition_mismatch(std::string_view name, std::string_view stored,
                          std::string_view requested) {
  return {errc::invalid_argument,
          "the sequence '" + std::string(name) + "' is defined as '" + std::string(stored) +
              "', and not as '" + std::string(requested) +
              "': its ids could repeat; use the same options everywhere, or change the definition "
              "on purpose (sequence::redefine, holdfast seq define)",
          {.path = "definition"}};
}

std::int64_t last_after_redefinition(const sequence_options& before, const sequence_options& after,
                                     std::int64_t last) {
  if ((before.increment > 0) != (after.increment > 0))
    throw error(errc::invalid_argument,
                "a sequence cannot change its direction: ids below its start may be in use; begin "
                "another sequence",
                {.path = "increment"});
  if (before.cycle && !after.cycle)
    throw error(errc::invalid_argument,
                "a sequence that cycles cannot stop to do so: ids up to its end may be in use; "
                "begin another sequence",
                {.path = "cycle"});
  if (last == 0) return 0;
  const id_range old_range(before);
  const id_range new_range(after);
  const std::int64_t last_id = old_range.id(std::min(last, old_range.limit()));
  std::int64_t reached = new_range.ordinal_up_to(last_id);
  // The last old id may lie between two new ones. The next redefinition only looks at the last
  // ordinal of this one, so that must be at the old id or beyond it.
  if (reached != 0 && reached < new_range.limit() && new_range.id(reached) != last_id) ++reached;
  const std::int64_t raised = std::max(last, reached);
  if (raised >= new_range.limit() && !after.cycle)
    throw error(errc::out_of_range,
                "the new limits leave no id: the last id in use is " + std::to_string(last_id));
  return raised;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
