#include "sql/postgres_binary.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql::postgres {

namespace {

// From the server's catalogue, where they never change.
namespace oids {
constexpr oid bytea = 17, name = 19, int8 = 20, int2 = 21, int4 = 23, text = 25, bpchar = 1042, varchar = 1043, timestamp = 1114,
              timestamptz = 1184, bytea_array = 1001, text_array = 1009, int8_array = 1016, timestamptz_array = 1185;
}  // namespace oids

// PostgreSQL counts from 2000-01-01.
constexpr std::int64_t epoch = 946'684'800'000'000;
// Its calendar begins in 4713 BC, and ends thirty years after ours. The ends of the integers are its infinities.
constexpr std::int64_t first_moment = -211'813'488'000'000'000;
constexpr std::int64_t infinity = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t minus_infinity = std::numeric_limits<std::int64_t>::min();

// A message to the server must stay below 1 GiB; the rest is for its frame.
constexpr std::size_t longest_message = (std::size_t{1} << 30U) - (std::size_t{1} << 20U);
// Memory above this is given back after use: one big batch should not be paid for ever.
constexpr std::size_t kept_storage = std::size_t{1} << 20U;

template <typename Integer>
void put(char* to, Integer number) noexcept {
  const auto bits = static_cast<std::make_unsigned_t<Integer>>(number);
  for (std::size_t i = 0; i < sizeof bits; ++i) to[i] = static_cast<char>(static_cast<unsigned char>(bits >> (8U * (sizeof bits - 1 - i))));
}

template <typename Integer>
Integer get(std::string_view bytes) {
  if (bytes.size() != sizeof(Integer)) throw error(errc::malformed, "PostgreSQL sent a number of an unexpected size");
  std::make_unsigned_t<Integer> bits = 0;
  for (const char c : bytes) bits = static_cast<decltype(bits)>((std::uint64_t{bits} << 8U) | static_cast<unsigned char>(c));
  return static_cast<Integer>(bits);
}

/// Ours for "always" and "never" are the ends of the type; PostgreSQL's are its infinities.
std::int64_t to_postgres(timestamp when) {
  if (when == timestamp::max()) return infinity;
  if (when == timestamp::min()) return minus_infinity;
  const auto count = when.time_since_epoch().count();
  if (count < first_moment + epoch) throw error(errc::out_of_range, "a time before 4713 BC cannot be stored in PostgreSQL");
  return count - epoch;
}

/// NULL for a time that ours cannot hold: one odd row must not cost the others.
value from_postgres(std::int64_t count) {
  if (count == infinity) return timestamp::max();
  if (count == minus_infinity) return timestamp::min();
  if (count > infinity - epoch) return {};
  return timestamp(std::chrono::microseconds(count + epoch));
}

[[noreturn]] void fail_type(type declared) {
  static constexpr std::array<std::string_view, 4> names{"integer", "text", "bytes", "time"};
  throw error(errc::invalid_argument, "a parameter is declared as " + std::string(names.at(static_cast<std::size_t>(declared))) +
                                          ", but its value is of another type");
}

/// A number as it travels.
std::int64_t number_of(type declared, const parameter& value) {
  if (declared == type::integer) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  } else if (const auto* when = std::get_if<timestamp>(&value)) {
    return to_postgres(*when);
  }
  fail_type(declared);
}

/// Text for bytes and bytes for text are welcome: which of them a payload is depends on its column.
std::string_view string_of(type declared, const parameter& value) {
  std::string_view result;
  if (const auto* text = std::get_if<std::string_view>(&value)) result = *text;
  else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value))
    result = {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  else fail_type(declared);
  if (declared == type::text && !result.empty() && std::memchr(result.data(), 0, result.size()) != nullptr)
    throw error(errc::invalid_argument, "text with a NUL byte cannot be stored in a PostgreSQL text column; store it as bytes");
  return result;
}

bool is_number(type t) noexcept { return t == type::integer || t == type::time; }
bool is_null(const parameter& value) noexcept { return std::holds_alternative<std::monostate>(value); }

[[noreturn]] void fail_size() {
  throw error(errc::too_large,
              "the parameters are more than 1 GiB, which PostgreSQL cannot take in one statement; send fewer rows at once");
}

std::string name_of(oid type) {
  static constexpr std::array<std::pair<oid, std::string_view>, 19> known{{{16, "boolean"},
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
  const auto* const found = std::find_if(known.begin(), known.end(), [type](const auto& each) { return each.first == type; });
  return found == known.end() ? "the type with OID " + std::to_string(type) : std::string(found->second);
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
  stored_.clear();
  values_.clear();
  lengths_.clear();
  formats_.clear();
  types_.clear();
  total_ = 0;
}

void bindings::add_bytes(const char* data, std::size_t length) {
  if (length > longest_message - total_) fail_size();
  total_ += length;
  stored_.push_back(-1);
  values_.push_back(data);
  lengths_.push_back(static_cast<int>(length));
  formats_.push_back(1);
}

void bindings::add_stored(std::size_t from) {
  add_bytes(nullptr, storage_.size() - from);
  stored_.back() = static_cast<std::ptrdiff_t>(from);
}

void bindings::add(type declared, const parameter& value) {
  types_.push_back(oid_of(declared));
  if (is_null(value)) return add_bytes(nullptr, 0);
  if (is_number(declared)) {
    const auto number = number_of(declared, value);
    const auto from = storage_.size();
    storage_.resize(from + sizeof number);
    put(storage_.data() + from, number);
    return add_stored(from);
  }
  const auto text = string_of(declared, value);
  // To libpq no address means NULL; an empty string has one.
  add_bytes(text.empty() ? "" : text.data(), text.size());
}

// The number of dimensions, whether there are NULLs, the type of the elements; for the one dimension its length and its first index;
// then each element, its length before it. All big-endian 32-bit numbers.
void bindings::add_array(type declared, std::span<const parameter> column) {
  types_.push_back(array_oid_of(declared));
  constexpr std::size_t word = 4;
  constexpr std::size_t header = 5 * word;
  if (column.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) fail_size();

  std::size_t length = header;
  bool nulls = false;
  for (const auto& value : column) {
    length += word;
    if (is_null(value)) nulls = true;
    else length += is_number(declared) ? sizeof(std::int64_t) : string_of(declared, value).size();
  }
  if (length > longest_message - total_) fail_size();

  const auto from = storage_.size();
  storage_.resize(from + length);
  char* to = storage_.data() + from;
  for (const std::uint32_t each :
       {std::uint32_t{1}, std::uint32_t{nulls}, oid_of(declared), static_cast<std::uint32_t>(column.size()), std::uint32_t{1}}) {
    put(to, each);
    to += word;
  }
  for (const auto& value : column) {
    if (is_null(value)) {
      put(to, std::int32_t{-1});
      to += word;
    } else if (is_number(declared)) {
      put(to, static_cast<std::int32_t>(sizeof(std::int64_t)));
      put(to + word, number_of(declared, value));
      to += word + sizeof(std::int64_t);
    } else {
      // Looked at for NUL bytes in the first pass, which went over the same values.
      const auto text = string_of(type::bytes, value);
      put(to, static_cast<std::int32_t>(text.size()));
      if (!text.empty()) std::memcpy(to + word, text.data(), text.size());
      to += word + text.size();
    }
  }
  add_stored(from);
}

void bindings::finish() {
  if (lengths_.size() > std::numeric_limits<std::uint16_t>::max())
    throw error(errc::too_large, "a PostgreSQL statement takes at most 65535 parameters");
  for (std::size_t i = 0; i < stored_.size(); ++i)
    if (stored_[i] >= 0) values_[i] = storage_.data() + stored_[i];
}

column_reader::column_reader(type wanted, oid actual, std::string_view column) {
  bool fits = false;
  switch (actual) {
    case oids::int2:
      form_ = form::int2;
      fits = wanted == type::integer;
      break;
    case oids::int4:
      form_ = form::int4;
      fits = wanted == type::integer;
      break;
    case oids::int8:
      form_ = form::int8;
      fits = wanted == type::integer;
      break;
    case oids::text:
    case oids::varchar:
    case oids::bpchar:
    case oids::name:
    case oids::bytea:
      fits = wanted == type::text || wanted == type::bytes;
      break;
    case oids::timestamp:  // without a zone: taken as UTC, the zone of our sessions
    case oids::timestamptz:
      form_ = form::moment;
      fits = wanted == type::time;
      break;
    default:
      break;
  }
  if (fits) return;
  static constexpr std::array<std::string_view, 4> names{"an integer", "text", "bytes", "a time"};
  throw error(errc::unsupported_type, "the column " + std::string(column) + " is of type " + name_of(actual) +
                                          ", which cannot be read as " + std::string(names.at(static_cast<std::size_t>(wanted))));
}

value column_reader::read(std::optional<std::string_view> bytes) const {
  if (!bytes) return {};
  switch (form_) {
    case form::int2:
      return std::int64_t{get<std::int16_t>(*bytes)};
    case form::int4:
      return std::int64_t{get<std::int32_t>(*bytes)};
    case form::int8:
      return get<std::int64_t>(*bytes);
    case form::moment:
      return from_postgres(get<std::int64_t>(*bytes));
    case form::string:
      break;
  }
  return std::string(*bytes);
}

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
