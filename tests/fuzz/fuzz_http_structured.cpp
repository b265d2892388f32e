// Reads any bytes as structured fields. What is accepted is written, read again, and the same.
// links: holdfast::http

#include "http/structured_field.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

namespace sf = holdfast::detail::http::structured;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto item = sf::parse_item(text)) require(sf::parse_item(sf::serialize(*item)) == item);
  if (const auto list = sf::parse_list(text)) require(sf::parse_list(sf::serialize(*list)) == list);
  if (const auto dictionary = sf::parse_dictionary(text))
    require(sf::parse_dictionary(sf::serialize(*dictionary)) == dictionary);
  return 0;
}
