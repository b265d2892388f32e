// The names of the enumerations of stores. A value that is not in its enumeration is "unknown".

#include <holdfast/store.hpp>
#include <holdfast/store/tenants.hpp>
#include <holdfast/store/write_behind.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(peer other) noexcept {
  switch (other) {
    case peer::none:
      return "none";
    case peer::java:
      return "java";
  }
  return "unknown";
}

std::string_view to_string(store_query query) noexcept {
  switch (query) {
    case store_query::upsert:
      return "upsert";
    case store_query::insert:
      return "insert";
    case store_query::update:
      return "update";
    case store_query::find:
      return "find";
    case store_query::find_all:
      return "find_all";
    case store_query::erase:
      return "erase";
    case store_query::expire:
      return "expire";
    case store_query::count:
      return "count";
    case store_query::rewrite:
      return "rewrite";
    case store_query::name_after:
      return "name_after";
    case store_query::find_many:
      return "find_many";
    case store_query::expiring:
      return "expiring";
  }
  return "unknown";
}

std::string_view to_string(payload_column column) noexcept {
  switch (column) {
    case payload_column::text:
      return "text";
    case payload_column::bytes:
      return "bytes";
  }
  return "unknown";
}

std::string_view to_string(start_probe mode) noexcept {
  switch (mode) {
    case start_probe::off:
      return "off";
    case start_probe::warn:
      return "warn";
    case start_probe::strict:
      return "strict";
  }
  return "unknown";
}

std::string_view to_string(start_mode mode) noexcept {
  switch (mode) {
    case start_mode::background:
      return "background";
    case start_mode::require:
      return "require";
  }
  return "unknown";
}

std::string_view to_string(tenant_strategy strategy) noexcept {
  switch (strategy) {
    case tenant_strategy::table_prefix:
      return "table_prefix";
    case tenant_strategy::schema:
      return "schema";
  }
  return "unknown";
}

std::string_view to_string(when_full policy) noexcept {
  switch (policy) {
    case when_full::block:
      return "block";
    case when_full::drop_oldest:
      return "drop_oldest";
    case when_full::write_through:
      return "write_through";
  }
  return "unknown";
}

}  // namespace HOLDFAST_NAMESPACE
