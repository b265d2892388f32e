#include "sql/postgres/values.hpp"

#include "sql/driver_support.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

namespace {

// From the server's catalogue pg_type, where they never change.
namespace oids {
constexpr oid bytea = 17, name = 19, int8 = 20, int2 = 21, int4 = 23, text = 25, bpchar = 1042,
              varchar = 1043, timestamp = 1114, timestamptz = 1184, bytea_array = 1001,
              text_array = 1009, int8_array = 1016, timestamptz_array = 1185;
}  // namespace oids

// PostgreSQL counts microseconds from 2000-01-01. Its calendar begins in 4713 BC and ends thirty
// years after that of `timestamp`. The limits of the integer are its infinities.
constexpr std::int64_t epoch = 946'684'800'000'000;
constexpr std::int64_t first_time = -211'813'488'000'000'000;
constexpr std::int64_t infinity = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t minus_infinity = std::numeric_limits<std::int64_t>::min();

// A message to the server must be shorter than 1 GiB; 1 MiB of it is left for its frame.
constexpr std::size_t message_limit = (std::size_t{1} << 30U) - (std::size_t{1} << 20U);
// More memory than this is freed after use: one large batch should not occupy it permanently.
constexpr std::size_t kept_storage = std::size_t{1} << 20U;

template <typename Integer>
void write_big_endian(char* destination, Integer number) noexcept {
  const auto bits = static_cast<std::make_unsigned_t<Integer>>(number);
  for (std::size_t i = 0; i < sizeof bits; ++i)
    destination[i] =
        static_cast<char>(static_cast<unsigned char>(bits >> (8U * (sizeof bits - 1 - i))));
}

template <typename Integer>
Integer read_big_endian(std::string_view bytes) {
  if (bytes.size() != sizeof(Integer))
    throw error(errc::malformed, "PostgreSQL sent a number of an unexpected size");
  std::make_unsigned_t<Integer> bits = 0;
  for (const char c : bytes)
    bits = static_cast<decltype(bits)>((std::uint64_t{bits} << 8U) | static_cast<unsigned char>(c));
  return static_cast<Integer>(bits);
}

/// The first and the last timestamp mean "always" and "never": they become PostgreSQL's infinities.
std::int64_t to_postgres(timestamp time) {
  if (time == timestamp::max()) return infinity;
  if (time == timestamp::min()) return minus_infinity;
  const auto count = time.time_since_epoch().count();
  if (count < first_time + epoch)
    throw error(errc::out_of_range, "a time before 4713 BC cannot be stored in PostgreSQL");
  return count - epoch;
}

/// Returns NULL for a time that `timestamp` cannot represent: one such row must not make the others
/// unreadable.
value from_postgres(std::int64_t count) {
  if (count == infinity) return timestamp::max();
  if (count == minus_infinity) return timestamp::min();
  if (count > infinity - epoch) return {};
  return timestamp(std::chrono::microseconds(count + epoch));
}

bool is_number(type t) noexcept { return t == type::integer || t == type::time; }

/// An integer or a time as the integer that is sent.
std::int64_t number_of(type declared, const parameter& value) {
  if (declared == type::integer) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  } else if (const auto* time = std::get_if<timestamp>(&value)) {
    return to_postgres(*time);
  }
  fail_type(declared);
}

std::string_view string_of(type declared, const parameter& value) {
  const auto characters = characters_of(value);
  if (!characters) fail_type(declared);
  if (declared == type::text && characters->find('\0') != std::string_view::npos)
    throw error(
        errc::invalid_argument,
        "text with a NUL byte cannot be stored in a PostgreSQL text column; store it as bytes");
  return *characters;
}

[[noreturn]] void fail_size() {
  throw error(errc::too_large,
              "the parameters are more than 1 GiB, which PostgreSQL cannot take in one statement; "
              "send fewer rows at once");
}

std::string name_of(oid type) {
  static constexpr std::array<std::pair<oid, std::string_view>, 19> names{
      {{16, "boolean"},
       {oids::bytea, "bytea"},
       {oids::name, "name"},
       {oids::int8, "bigint"},
       {oids::int2, "smallint"},
       {oids::int4, "integer"},
       {oids::text, "text"},
       {26, "oid"},
       {114, "json"},
       {700, "real"},
       {701, "double precision"},
       {oids::bpchar, "character"},
       {oids::varchar, "character varying"},
       {1082, "date"},
       {oids::timestamp, "timestamp without time zone"},
       {oids::timestamptz, "timestamp with time zone"},
       {1700, "numeric"},
       {2950, "uuid"},
       {3802, "jsonb"}}};
  const auto* const row =
      std::ranges::find_if(names, [type](const auto& each) { return each.first == type; });
  return row == names.end() ? "the type with OID " + std::to_string(type)
                            : std::string(row->second);
}

}  // namespace

oid oid_of(type t) noexcept {
  switch (t) {
    case type::integer:
      return oids::int8;
    case type::text:
      return oids::text;
    case type::bytes:
      return oids::bytea;
    case type::time:
      break;
  }
  return oids::timestamptz;
}

oid array_oid_of(type t) noexcept {
  switch (t) {
    case type::integer:
      return oids::int8_array;
    case type::text:
      return oids::text_array;
    case type::bytes:
      return oids::bytea_array;
    case type::time:
      break;
  }
  return oids::timestamptz_array;
}

void bindings::clear() noexcept {
  storage_.clear();
  if (storage_.capacity() > kept_storage) storage_ = {};
  offsets_.clear();
  values_.clear();
  lengths_.clear();
  formats_.clear();
  types_.clear();
  total_length_ = 0;
}

void bindings::add_bytes(const char* data, std::size_t length) {
  if (length > message_limit - total_length_) fail_size();
  total_length_ += length;
  offsets_.push_back(-1);
  values_.push_back(data);
  lengths_.push_back(static_cast<int>(length));
  formats_.push_back(1);
}

/// Adds what was written to storage_ from `offset` on. Its address is set in finish(), because
/// storage_ may still move.
void bindings::add_stored(std::size_t offset) {
  add_bytes(nullptr, storage_.size() - offset);
  offsets_.back() = static_cast<std::ptrdiff_t>(offset);
}

void bindings::add(type declared, const parameter& value) {
  types_.push_back(oid_of(declared));
  if (is_null(value)) return add_bytes(nullptr, 0);
  if (is_number(declared)) {
    const auto number = number_of(declared, value);
    const auto offset = storage_.size();
    storage_.resize(offset + sizeof number);
    write_big_endian(storage_.data() + offset, number);
    return add_stored(offset);
  }
  const auto text = string_of(declared, value);
  // To libpq a null pointer is NULL, so an empty string needs an address.
  add_bytes(text.empty() ? "" : text.data(), text.size());
}

// The format of an array, all numbers big-endian with 32 bits:
//   number of dimensions (1), whether there are NULLs, type of the elements,
//   length of the dimension, index of its first element (1),
//   then for each element its length (-1 for NULL) and its bytes.
void bindings::add_array(type declared, std::span<const parameter> column) {
  types_.push_back(array_oid_of(declared));
  constexpr std::size_t word = 4;
  constexpr std::size_t header = 5 * word;
  if (column.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    fail_size();

  std::size_t length = header;
  bool has_nulls = false;
  for (const auto& value : column) {
    length += word;
    if (is_null(value)) has_nulls = true;
    else length += is_number(declared) ? sizeof(std::int64_t) : string_of(declared, value).size();
  }
  if (length > message_limit - total_length_) fail_size();

  const auto offset = storage_.size();
  storage_.resize(offset + length);
  char* position = storage_.data() + offset;
  for (const std::uint32_t field : {std::uint32_t{1}, std::uint32_t{has_nulls}, oid_of(declared),
                                    static_cast<std::uint32_t>(column.size()), std::uint32_t{1}}) {
    write_big_endian(position, field);
    position += word;
  }
  for (const auto& value : column) {
    if (is_null(value)) {
      write_big_endian(position, std::int32_t{-1});
      position += word;
    } else if (is_number(declared)) {
      write_big_endian(position, static_cast<std::int32_t>(sizeof(std::int64_t)));
      write_big_endian(position + word, number_of(declared, value));
      position += word + sizeof(std::int64_t);
    } else {
      // As bytes: the first loop has checked text for NUL bytes.
      const auto text = string_of(type::bytes, value);
      write_big_endian(position, static_cast<std::int32_t>(text.size()));
      if (!text.empty()) std::memcpy(position + word, text.data(), text.size());
      position += word + text.size();
    }
  }
  add_stored(offset);
}

wire_parameters bindings::finish() {
  if (lengths_.size() > std::numeric_limits<std::uint16_t>::max())
    throw error(errc::too_large, "a PostgreSQL statement takes at most 65535 parameters");
  for (std::size_t i = 0; i < offsets_.size(); ++i)
    if (offsets_[i] >= 0) values_[i] = storage_.data() + offsets_[i];
  return {.count = static_cast<int>(lengths_.size()),
          .types = types_.data(),
          .values = values_.data(),
          .lengths = lengths_.data(),
          .formats = formats_.data()};
}

column_reader::column_reader(type expected, oid actual, std::string_view column_name) {
  bool readable = false;
  switch (actual) {
    case oids::int2:
      format_ = format::int2;
      readable = expected == type::integer;
      break;
    case oids::int4:
      format_ = format::int4;
      readable = expected == type::integer;
      break;
    case oids::int8:
      format_ = format::int8;
      readable = expected == type::integer;
      break;
    case oids::text:
    case oids::varchar:
    case oids::bpchar:
    case oids::name:
    case oids::bytea:
      readable = expected == type::text || expected == type::bytes;
      break;
    case oids::timestamp:  // without a zone: read as UTC, the time zone of our sessions
    case oids::timestamptz:
      format_ = format::time;
      readable = expected == type::time;
      break;
    default:
      break;
  }
  if (readable) return;
  static constexpr std::array<std::string_view, 4> names{"an integer", "text", "bytes", "a time"};
  throw error(errc::unsupported_type,
              "the column " + std::string(column_name) + " is of type " + name_of(actual) +
                  ", which cannot be read as " +
                  std::string(names.at(static_cast<std::size_t>(expected))));
}

value column_reader::read(std::optional<std::string_view> bytes) const {
  if (!bytes) return {};
  switch (format_) {
    case format::int2:
      return std::int64_t{read_big_endian<std::int16_t>(*bytes)};
    case format::int4:
      return std::int64_t{read_big_endian<std::int32_t>(*bytes)};
    case format::int8:
      return read_big_endian<std::int64_t>(*bytes);
    case format::time:
      return from_postgres(read_big_endian<std::int64_t>(*bytes));
    case format::string:
      break;
  }
  return std::string(*bytes);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
