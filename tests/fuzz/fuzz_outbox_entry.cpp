// Any bytes, read as an entry of an outbox; and as the payload, key and header of an event, written
// and read again.

#include <holdfast/error.hpp>

#include "outbox/entry.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using holdfast::detail::outbox::entry_body;
using holdfast::detail::outbox::entry_text;
using holdfast::detail::outbox::read_entry;

constexpr std::string_view id = "0192f0c1-2345-7abc-8def-0123456789ab";

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    // What can be read can be written, and reads the same.
    const auto once = read_entry(text);
    const auto again = read_entry(
        entry_text(once.event.id, entry_body(once.event), once.created_ms, once.sequence));
    require(again.event == once.event && again.created_ms == once.created_ms &&
            again.sequence == once.sequence);
  } catch (const holdfast::error& problem) {
    require(problem.code() == holdfast::errc::malformed ||
            problem.code() == holdfast::errc::unsupported_type);
  }
  // Not JSON, which may be nested too deep.
  holdfast::event what{.type = "t",
                       .payload = text,
                       .id = std::string(id),
                       .content_type = "application/octet-stream"};
  require(read_entry(entry_text(id, entry_body(what), 1, 2)).event == what);
  return 0;
}
