// Reads any bytes as a request target. A normalised target is its own normal form, has no dot
// segments and nothing that another program could decode to a slash in the path.
// links: holdfast::http

#include "http/target.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using holdfast::detail::http::for_each_parameter;
using holdfast::detail::http::percent_decode;
using holdfast::detail::http::target;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)percent_decode(text);
  const auto parsed = target::parse(text);
  if (!parsed) return 0;
  const std::string path(parsed->path());
  require(path.starts_with('/'));
  require((path + "/").find("/../") == std::string::npos);
  require((path + "/").find("/./") == std::string::npos);
  for (const std::string_view refused : {"%2F", "%5C", "%00", "\\", "?", "#", " ", "\n"})
    require(path.find(refused) == std::string::npos);
  require(percent_decode(path).has_value());
  for (const char c : parsed->text()) require(c > ' ' && c < 0x7F);
  const auto again = target::parse(parsed->text());
  require(again && again->text() == parsed->text() && again->path() == parsed->path());
  for_each_parameter(parsed->query(), [](std::string_view name, std::string_view value) {
    require(percent_decode(name) && percent_decode(value));
  });
  return 0;
}
