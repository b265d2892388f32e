// The names of the enumerations of keys. A value that is not in its enumeration is "unknown".

#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/typed_json.hpp>
#include <holdfast/key/value.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

std::string_view to_string(scheme value) noexcept {
  switch (value) {
    case scheme::failover:
      return "failover";
    case scheme::cachekit_auto:
      return "cachekit_auto";
    case scheme::interop:
      return "interop";
    case scheme::interop_value:
      return "interop_value";
  }
  return "unknown";
}

std::string_view to_string(dialect version) noexcept {
  switch (version) {
    case dialect::current:
      return "current";
    case dialect::py_0_17:
      return "py_0_17";
    case dialect::v1_0:
      return "v1_0";
  }
  return "unknown";
}

std::string_view to_string(style key_style) noexcept {
  switch (key_style) {
    case style::escaped:
      return "escaped";
    case style::exact:
      return "exact";
  }
  return "unknown";
}

std::string_view to_string(row_hash hash) noexcept {
  switch (hash) {
    case row_hash::md5:
      return "md5";
    case row_hash::blake2b:
      return "blake2b";
  }
  return "unknown";
}

std::string_view to_string(path::flavour path_flavour) noexcept {
  switch (path_flavour) {
    case path::flavour::posix:
      return "posix";
    case path::flavour::windows:
      return "windows";
  }
  return "unknown";
}

std::string_view to_string(array_value::element element_type) noexcept {
  switch (element_type) {
    case array_value::element::i32:
      return "i32";
    case array_value::element::i64:
      return "i64";
    case array_value::element::f32:
      return "f32";
    case array_value::element::f64:
      return "f64";
  }
  return "unknown";
}

}  // namespace HOLDFAST_NAMESPACE::key
