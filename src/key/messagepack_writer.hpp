#pragma once

#include <holdfast/key/writer.hpp>
#include <holdfast/version.hpp>

#include "key/output.hpp"

#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

/// Which rules of CacheKit the bytes follow.
enum class profile : std::uint8_t {
  cachekit_auto,  ///< [args, kwargs]; floats stay floats; no sets
  interop_args,   ///< one flat array; whole floats become integers; sets sorted
  interop_value   ///< one document; floats as they are; times as marked maps
};

/// Canonical MessagePack: every header in its shortest form, maps sorted by key, float64 only. Written here because the packaged
/// libraries turn 1.0 into an integer or a float32, which would give keys that no other language makes.
class messagepack_writer final : public writer {
 public:
  messagepack_writer(profile rules, output& out) noexcept
      : out_(out), rules_(rules), deepest_(rules == profile::cachekit_auto ? 510 : max_height) {}

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
    std::size_t begin;                  // in held_sets::bytes
    std::vector<std::size_t> elements;  // where each one begins
  };

  /// A set is sorted by its encoded elements, so it is held back until it is complete. Few calls have one.
  struct held_sets {
    std::vector<open_set> open{};
    std::string bytes{};
  };

  void begin_value(std::size_t levels_inside = 0);
  void put(char c) {
    if (holding_back_) sets_->bytes.push_back(c);
    else out_.put(c);
  }
  void put(std::string_view piece) {
    if (holding_back_) sets_->bytes.append(piece);
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
  void put_number_by_interop_rules(double v);
  void put_temporal(std::string_view marker, std::string_view iso);
  void put_key(const map_key& k);

  output& out_;
  profile rules_;
  std::size_t deepest_;          // how many levels may be open around a value; 510 is where CacheKit's reference encoder stops
  std::size_t array_bytes_ = 0;  // all numeric arrays of the call together
  std::unique_ptr<held_sets> sets_{};
  bool holding_back_ = false;  // a set is open
};

}  // namespace HOLDFAST_NAMESPACE::key
