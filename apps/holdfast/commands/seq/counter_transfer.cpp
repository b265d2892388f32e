#include "commands/seq/counter_transfer.hpp"

#include <holdfast/error.hpp>

#include "sequence/definition.hpp"
#include "terminal/json_fields.hpp"
#include "terminal/text.hpp"

#include <cstddef>
#include <limits>

namespace holdfast::cli {

namespace {

/// The part of a definition that every store keeps. A store adds its fence, for example.
std::string portable_definition(std::string_view definition) {
  std::string text;
  for (const std::string_view field : {"start", "increment", "end", "cycle"}) {
    const auto value = detail::sequence::definition_field(definition, field);
    if (!value) return {};
    text.append(text.empty() ? "" : " ").append(field).append("=").append(*value);
  }
  return text;
}

}  // namespace

std::uint64_t export_counters(block_store& counters,
                              const std::function<void(const std::string&)>& write) {
  constexpr std::size_t page_size = 500;
  std::uint64_t count = 0;
  std::string after;
  for (;;) {
    const auto page = counters.list(page_size, after);
    for (const auto& counter : page) {
      const auto definition = counters.definition(counter.name);
      write("{\"kind\":\"counter\",\"name\":" + json_string(counter.name) +
            ",\"last\":" + std::to_string(counter.state.last) +
            ",\"epoch\":" + std::to_string(counter.state.epoch) +
            (definition ? ",\"definition\":" + json_string(*definition) : "") + "}");
      ++count;
    }
    if (page.size() < page_size) return count;
    after = page.back().name;
  }
}

void import_counter(block_store& counters, std::string_view line, std::int64_t ahead) {
  simdjson::dom::parser parser;
  const auto fields = json_fields::of_line(parser, line);
  const auto name = fields.text("name");
  const auto last = fields.integer("last");
  if (last < 0) throw error(errc::invalid_argument, "\"last\" is negative");
  constexpr auto highest = std::numeric_limits<std::int64_t>::max();
  const auto state =
      counters.ensure_at_least(name, last > highest - ahead ? highest : last + ahead);
  const auto definition = portable_definition(fields.optional_text("definition"));
  if (definition.empty() || counters.definition(name)) return;
  // Only an SQL store adds nothing else to a definition. On Redis the first user sets it, with its
  // fence.
  if (counters.complete_definition(definition) != definition) return;
  // Returns false if a user has set the definition meanwhile.
  (void)counters.redefine(name, definition, state.last, state, "");
}

}  // namespace holdfast::cli
