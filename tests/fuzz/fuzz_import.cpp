// sources: apps/holdfast/commands/store/entry_text.cpp apps/holdfast/terminal/text.cpp apps/holdfast/terminal/time_text.cpp
// links: simdjson::simdjson
// Any line, read as `store import` reads it. What can be read is written and read again, and is the
// same.

#include <holdfast/error.hpp>

#include "commands/store/entry_text.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static holdfast::cli::entry_reader read;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    const auto entry = read(line);
    const auto text = holdfast::cli::entry_json(entry);
    require(text.find('\n') == std::string::npos);
    const auto again = read(text);
    require(again.name == entry.name && again.key == entry.key && again.payload == entry.payload);
    require(again.payload_class == entry.payload_class && again.as_of == entry.as_of &&
            again.expire_on == entry.expire_on);
    require(holdfast::cli::entry_row(entry, entry.as_of).size() == 5);
  } catch (const holdfast::error& refused) {
    require(!refused.message().empty());
  }
  return 0;
}
