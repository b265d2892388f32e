// links: simdjson::simdjson
// Runs any line as a case in every scheme. The answer must be one line of JSON.

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
                         batch({.scheme = scheme::cachekit_auto, .dialect = dialect::v1_0}),
                         batch({.scheme = scheme::cachekit_auto}),
                         batch({.scheme = scheme::interop}),
                         batch({.scheme = scheme::interop_value})};
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  static simdjson::dom::parser parser;
  for (batch& cases : batches) {
    std::string out;
    cases.run(line, out);
    if (out.empty() || out.find('\n') != out.size() - 1) std::abort();
    simdjson::dom::object answer;
    if (parser.parse(out).get(answer) != simdjson::SUCCESS ||
        answer["id"].error() != simdjson::SUCCESS)
      std::abort();
  }
  return 0;
}
