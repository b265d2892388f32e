// links: simdjson::simdjson
// Any line in, exactly one line of JSON out, in every scheme.

#include <holdfast/key/batch.hpp>

#include <simdjson.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace holdfast::key;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static batch batches[]{batch({.scheme = scheme::failover, .style = style::exact}),
                         batch({.scheme = scheme::failover}),
                         batch({.scheme = scheme::cachekit_auto, .dialect = dialect::seed}),
                         batch({.scheme = scheme::cachekit_auto}),
                         batch({.scheme = scheme::interop}),
                         batch({.scheme = scheme::interop_value})};
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  static simdjson::dom::parser parser;
  for (batch& each : batches) {
    std::string out;
    each.run(line, out);
    if (out.empty() || out.find('\n') != out.size() - 1) std::abort();
    simdjson::dom::object answer;
    if (parser.parse(out).get(answer) != simdjson::SUCCESS || answer["id"].error() != simdjson::SUCCESS) std::abort();
  }
  return 0;
}
