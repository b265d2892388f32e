#include "entry_text.hpp"

#include <holdfast/database.hpp>

#include "base/url.hpp"
#include "base/utf8.hpp"
#include "text.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast::cli {

namespace {

using namespace std::chrono;

void append_digits(std::string& to, std::int64_t number, std::size_t width) {
  const auto text = std::to_string(number);
  to.append(width > text.size() ? width - text.size() : 0, '0').append(text);
}

}  // namespace

std::string iso(timestamp at) {
  at = std::clamp(at, timestamp(sys_days{year{0} / January / 1}), timestamp(sys_days{year{10000} / January / 1}) - microseconds(1));
  const auto day = floor<days>(at);
  const year_month_day date{day};
  const auto since = at - day;
  std::string text;
  append_digits(text, static_cast<int>(date.year()), 4);
  text += '-';
  append_digits(text, static_cast<unsigned>(date.month()), 2);
  text += '-';
  append_digits(text, static_cast<unsigned>(date.day()), 2);
  text += 'T';
  append_digits(text, floor<hours>(since).count(), 2);
  text += ':';
  append_digits(text, floor<minutes>(since).count() % 60, 2);
  text += ':';
  append_digits(text, floor<seconds>(since).count() % 60, 2);
  text += '.';
  append_digits(text, since.count() % 1'000'000, 6);
  return text + 'Z';
}

namespace {

timestamp read_iso(std::string_view text) {
  std::array<int, 7> parts{};
  constexpr std::string_view shape = "0000-00-00T00:00:00.000000Z";
  bool good = text.size() == shape.size();
  std::size_t part = 0;
  for (std::size_t i = 0; good && i < shape.size(); ++i) {
    if (shape[i] == '0') {
      good = text[i] >= '0' && text[i] <= '9';
      parts[part] = parts[part] * 10 + (text[i] - '0');
    } else {
      good = text[i] == shape[i];
      ++part;
    }
  }
  const year_month_day date{year{parts[0]}, month{static_cast<unsigned>(parts[1])}, day{static_cast<unsigned>(parts[2])}};
  if (!good || !date.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 59) {
    throw error(errc::invalid_argument,
                "'" + printable(without_secrets(text).substr(0, 40)) + "' is not a time like 2024-01-31T12:00:00.000000Z");
  }
  return timestamp(sys_days{date} + hours{parts[3]} + minutes{parts[4]} + seconds{parts[5]} + microseconds{parts[6]});
}

/// `3 h`, `12 d`: two numbers would be more than a table needs.
std::string rough(microseconds span) {
  const auto sign = span.count() < 0 ? "-" : "";
  const auto s = abs(duration_cast<seconds>(span)).count();
  if (s < 120) return sign + std::to_string(s) + " s";
  if (s < 7200) return sign + std::to_string(s / 60) + " m";
  if (s < 172'800) return sign + std::to_string(s / 3600) + " h";
  return sign + std::to_string(s / 86'400) + " d";
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace

microseconds read_duration(std::string_view text) {
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [after, failed] = std::from_chars(text.data(), end, number);
  constexpr std::int64_t longest = 36'500LL * 86'400;
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> units{{{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}}};
  const std::string_view unit(after, static_cast<std::size_t>(end - after));
  for (const auto& [name, scale] : units) {
    // No longer: whoever waits adds it to a clock that counts nanoseconds.
    if (failed == std::errc{} && unit == name && number >= 0 && number <= longest / scale) return seconds(number * scale);
  }
  throw error(errc::invalid_argument, "'" + printable(without_secrets(text).substr(0, 40)) +
                                          "' is not a duration; write a number and its unit: 90s, 15m, 1h, 7d; at most 36500d");
}

void check_json(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element any;
  const auto wrong = parser.parse(text.data(), text.size()).get(any);
  if (wrong == simdjson::SUCCESS) return;
  throw error(errc::malformed, "the payload is not JSON (" + std::string(simdjson::error_message(wrong)) + "); correct it, or say --raw");
}

std::string entry_json(const entry& e) {
  std::string text = "{\"name\":" + json_string(e.name) + ",\"key\":" + json_string(e.key) + ",\"as_of\":\"" + iso(e.as_of) +
                     "\",\"expire_on\":\"" + iso(e.expire_on) + "\",";
  if (!e.payload) text += "\"payload\":null";
  else if (is_utf8(*e.payload)) text += "\"payload\":" + json_string(*e.payload);
  else text += "\"payload_hex\":\"" + hex(*e.payload) + "\"";
  return text + ",\"payload_class\":" + json_string(e.payload_class) + "}";
}

std::string entry_line(const entry& e, timestamp now) {
  return padded(printable(e.key), 36) + "  " + padded(rough(now - e.as_of), 8) + "  " +
         padded(now > e.expire_on ? "expired" : rough(e.expire_on - now), 8) + "  " +
         padded(e.payload ? std::to_string(e.payload->size()) : "none", 5) + "  " + printable(e.payload_class);
}

std::string published_schema(const std::string& prefix) {
  (void)store_schema(sql::dialect_id::sqlite, {.prefix = prefix});  // checks the prefix
  const std::string table = prefix + "FAILOVER_STORE";
  const std::string index = "IDX_" + table.substr(table.rfind('.') + 1) + "_EXPIRE_ON";
  return "CREATE TABLE " + table +
         " (\n"
         "  FAILOVER_NAME VARCHAR(50) NOT NULL,\n"
         "  FAILOVER_KEY VARCHAR(256) NOT NULL,\n"
         "  AS_OF TIMESTAMP(9) WITH TIME ZONE NOT NULL,\n"
         "  EXPIRE_ON TIMESTAMP(9) WITH TIME ZONE NOT NULL,\n"
         "  PAYLOAD VARCHAR(4000),\n"
         "  PAYLOAD_CLASS VARCHAR(256),\n"
         "  PRIMARY KEY (FAILOVER_NAME, FAILOVER_KEY)\n"
         ");\n"
         "CREATE INDEX " +
         index + " ON " + table + " (EXPIRE_ON);\n";
}

struct entry_reader::state {
  simdjson::dom::parser parser;
};
entry_reader::entry_reader() : state_(std::make_unique<state>()) {}
entry_reader::~entry_reader() = default;

entry entry_reader::operator()(std::string_view line) {
  simdjson::dom::object json;
  if (state_->parser.parse(line.data(), line.size()).get(json) != simdjson::SUCCESS) throw error(errc::malformed, "not a JSON object");
  const auto text_of = [&json](const char* name) {
    std::string_view text;
    if (json[name].get(text) != simdjson::SUCCESS) throw error(errc::invalid_argument, std::string("expected a text \"") + name + "\"");
    return text;
  };
  entry result{.name = std::string(text_of("name")),
               .key = std::string(text_of("key")),
               .as_of = read_iso(text_of("as_of")),
               .expire_on = read_iso(text_of("expire_on"))};
  result.payload_class = text_of("payload_class");
  if (json["payload_hex"].error() == simdjson::SUCCESS) {
    const auto digits = text_of("payload_hex");
    if (digits.size() % 2 != 0) throw error(errc::invalid_argument, "\"payload_hex\" has an odd number of digits");
    result.payload.emplace();
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      unsigned byte = 0;
      if (std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16).ptr != digits.data() + i + 2) {
        throw error(errc::invalid_argument, "\"payload_hex\" is not hexadecimal");
      }
      result.payload->push_back(static_cast<char>(byte));
    }
  } else {
    simdjson::dom::element payload;
    if (json["payload"].get(payload) != simdjson::SUCCESS) {
      throw error(errc::invalid_argument, "the entry needs a \"payload\": a text, or null for a tombstone");
    }
    if (!payload.is_null()) result.payload = text_of("payload");
  }
  return result;
}

}  // namespace holdfast::cli
