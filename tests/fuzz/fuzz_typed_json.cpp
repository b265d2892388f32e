// Reads any text as typed JSON in every scheme, and makes keys of the values.

#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/interop.hpp>
#include <holdfast/key/typed_json.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace holdfast::key;

namespace {

template <class F>
void or_error(F f) {
  try {
    f();
  } catch (const holdfast::error& e) {
    if (e.path().empty() || e.message().empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  static const cachekit_keys cachekit({.module = "m", .qualname = "f"});
  static const interop_keys interop("a", "b");
  static const failover_keys exact({.name = "p"}, {.style = style::exact});
  static const failover_keys escaped({.name = "p"});

  for (const scheme target :
       {scheme::failover, scheme::cachekit_auto, scheme::interop, scheme::interop_value}) {
    static typed_json_reader readers[]{
        typed_json_reader(scheme::failover), typed_json_reader(scheme::cachekit_auto),
        typed_json_reader(scheme::interop), typed_json_reader(scheme::interop_value)};
    or_error([&] {
      const value v = readers[static_cast<std::size_t>(target)].read(json);
      if (v.height() > max_height) std::abort();
      or_error([&] { (void)cachekit(v); });
      or_error([&] { (void)interop(v); });
      or_error([&] { (void)exact(v); });
      or_error([&] { (void)escaped(v); });
      or_error([&] { (void)encode_value(v); });
    });
  }
  return 0;
}
