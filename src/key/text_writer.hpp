#pragma once

/// \file
/// The writer of the failover scheme.

#include <holdfast/key/failover.hpp>
#include <holdfast/key/writer.hpp>
#include <holdfast/version.hpp>

#include "key/output.hpp"

#include <functional>

namespace HOLDFAST_NAMESPACE::detail::key {

using namespace holdfast::key;

/// Writes the raw text of the failover scheme, in both styles. It only appends, so that a long text
/// can be hashed while it is written.
///
/// The text has two forms:
/// - the segment form of arguments and lists: elements joined with `:` and `,`;
/// - the string form of Java's toString, inside a map or an Optional: `{a=1, b=[1, 2]}`.
class text_writer final : public writer {
 public:
  /// `on_unstable` may be null.
  text_writer(key::style style, output& out,
              const std::function<void(std::string_view)>* on_unstable) noexcept
      : out_(out), escaped_(style == key::style::escaped), on_unstable_(on_unstable) {}

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
  [[nodiscard]] std::string_view format_name() const noexcept override { return "a failover key"; }

 private:
  void begin_value();
  void put_text(std::string_view v);
  void put_escaped(std::string_view v);
  void put_null();
  template <class Number>
  void put_number(Number v);
  void open_sequence(frame_kind kind, std::size_t count);
  void close_sequence();
  void refuse_in_string_form(std::string_view type_name) const;
  [[nodiscard]] bool in_string_form() const noexcept { return string_form_depth_ != 0; }

  output& out_;
  bool escaped_;
  bool lone_element_ = false;  // the next value is the only element of a list that is an argument
  std::size_t string_form_depth_ = 0;  // number of open maps and Optionals
  const std::function<void(std::string_view)>* on_unstable_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::key
