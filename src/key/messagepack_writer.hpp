#pragma once

/// \file
/// The encoder of CacheKit's keys and interop values.

#include <holdfast/key/writer.hpp>
#include <holdfast/version.hpp>

#include "key/output.hpp"

#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::key {

using namespace holdfast::key;

/// The rules of CacheKit that the encoder follows.
enum class profile : std::uint8_t {
  /// [args, kwargs]. Floats stay floats; sets are refused.
  cachekit_auto,
  /// An array of the arguments. Floats without a fraction become integers; sets are sorted.
  interop_args,
  /// One value. Floats stay floats; times are marked maps.
  interop_value
};

/// Writes canonical MessagePack: shortest headers, maps sorted by key, floats as float64. The
/// available libraries turn 1.0 into an integer or a float32, which would give other keys than
/// CacheKit's.
class messagepack_writer final : public writer {
 public:
  messagepack_writer(profile rules, output& out) noexcept
      : out_(out), rules_(rules), max_levels_(rules == profile::cachekit_auto ? 510 : max_height) {}

  void begin_arguments(std::size_t count) override;
  void begin_keywords(std::span<map_slot> slots) override;
  void end_arguments() override;

  void null() override;
  void boolean(bool v) override;
  void integer(std::int64_t v) override;
  void unsigned_integer(std::uint64_t v) override;
  void float32(float v) override;
  void float64(double v) override;
  void character(char32_t v) override;
  void text(std::string_view v) override;
  void bytes(std::span<const std::byte> v) override;
  void uuid(const key::uuid& v) override;
  void decimal(std::string_view v) override;
  void big_integer(std::string_view digits) override;
  void instant(const key::instant& v) override;
  void date(const key::date& v) override;
  void time_of_day(const key::time_of_day& v) override;
  void path(std::string_view v, key::path::flavour style) override;
  void array(array_value::element type, std::span<const std::byte> little_endian) override;

  void begin_list(std::size_t count) override;
  void end_list() override;
  void begin_set(std::size_t count) override;
  void end_set() override;
  void begin_map(std::span<map_slot> slots) override;
  void entry(const map_slot& slot) override;
  void end_map() override;

  void object(const key::object& v) override;
  void object_identity(const key::object_identity& v) override;
  void begin_optional(bool has_item) override;
  void end_optional() override;
  [[nodiscard]] bool enumerator_by_text(const key::enumeration& v) override;

 protected:
  [[nodiscard]] std::string_view format_name() const noexcept override;

 private:
  struct open_set {
    std::size_t begin;                         // in buffered_sets::bytes
    std::vector<std::size_t> element_offsets;  // in buffered_sets::bytes
  };

  /// A set is sorted by the bytes of its elements, so it is buffered until it is complete. The
  /// buffer is allocated for the first set.
  struct buffered_sets {
    std::vector<open_set> open{};
    std::string bytes{};
  };

  /// Counts the value and checks its depth, including `inner_levels` that it opens itself.
  void begin_value(std::size_t inner_levels = 0);
  void put(char c) {
    if (buffering_) sets_->bytes.push_back(c);
    else out_.put(c);
  }
  void put(std::string_view piece) {
    if (buffering_) sets_->bytes.append(piece);
    else out_.put(piece);
  }
  void put_big_endian(unsigned char marker, std::uint64_t v, std::size_t width);
  void put_negative(std::int64_t v);
  void put_unsigned(std::uint64_t v);
  void put_float(double v);
  void put_text(std::string_view v);
  void put_checked_text(std::string_view v);
  void put_long_header(std::size_t count, unsigned char marker16, unsigned char marker32);
  void put_array_header(std::size_t count) {
    if (count < 16) put(static_cast<char>(0x90U | count));
    else put_long_header(count, 0xdc, 0xdd);
  }
  void put_map_header(std::size_t count) {
    if (count < 16) put(static_cast<char>(0x80U | count));
    else put_long_header(count, 0xde, 0xdf);
  }
  void put_bytes(std::string_view v);
  void put_interop_number(double v);
  void put_temporal(std::string_view marker, std::string_view iso);
  void put_key(const map_key& k);

  output& out_;
  profile rules_;
  std::size_t max_levels_;       // of open containers; CacheKit's reference encoder stops at 510
  std::size_t array_bytes_ = 0;  // of all numeric arrays of the call
  std::unique_ptr<buffered_sets> sets_{};
  bool buffering_ = false;  // a set is open
};

}  // namespace HOLDFAST_NAMESPACE::detail::key
