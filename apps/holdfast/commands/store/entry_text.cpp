#include "commands/store/entry_text.hpp"

#include <holdfast/error.hpp>

#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <simdjson.h>

namespace holdfast::cli {

namespace {

/// Reads the fields of one entry. Throws errc::invalid_argument.
class entry_fields {
 public:
  explicit entry_fields(simdjson::dom::object json) : json_(json) {}

  [[nodiscard]] std::string_view text(const char* name) const {
    std::string_view text;
    if (json_[name].get(text) != simdjson::SUCCESS)
      throw error(errc::invalid_argument, std::string("expected a text \"") + name + "\"");
    return text;
  }

  /// Null is a tombstone.
  [[nodiscard]] std::optional<std::string> payload() const {
    if (json_["payload_hex"].error() == simdjson::SUCCESS) return bytes_of(text("payload_hex"));
    simdjson::dom::element payload;
    if (json_["payload"].get(payload) != simdjson::SUCCESS) {
      throw error(errc::invalid_argument,
                  "the entry needs a \"payload\": a text, or null for a tombstone");
    }
    if (payload.is_null()) return std::nullopt;
    return std::string(text("payload"));
  }

 private:
  static std::string bytes_of(std::string_view digits) {
    if (digits.size() % 2 != 0)
      throw error(errc::invalid_argument, "\"payload_hex\" has an odd number of digits");
    std::string bytes(digits.size() / 2, '\0');
    if (!detail::from_hex(digits, reinterpret_cast<unsigned char*>(bytes.data())))
      throw error(errc::invalid_argument, "\"payload_hex\" is not hexadecimal");
    return bytes;
  }

  simdjson::dom::object json_;
};

}  // namespace

std::string entry_json(const entry& e) {
  std::string text = "{\"name\":" + json_string(e.name) + ",\"key\":" + json_string(e.key) +
                     ",\"as_of\":\"" + iso_time(e.as_of) + "\",\"expire_on\":\"" +
                     iso_time(e.expire_on) + "\",";
  if (!e.payload) text += "\"payload\":null";
  else if (detail::is_utf8(*e.payload)) text += "\"payload\":" + json_string(*e.payload);
  else text += "\"payload_hex\":\"" + hex(*e.payload) + "\"";
  return text + ",\"payload_class\":" + json_string(e.payload_class) + "}";
}

std::vector<std::string> entry_row(const entry& e, timestamp now) {
  return {printable(e.key), human_duration(now - e.as_of),
          now > e.expire_on ? "expired" : "in " + human_duration(e.expire_on - now),
          e.payload ? std::to_string(e.payload->size()) : "none", printable(e.payload_class)};
}

struct entry_reader::state {
  simdjson::dom::parser parser;
};
entry_reader::entry_reader() : state_(std::make_unique<state>()) {}
entry_reader::~entry_reader() = default;

entry entry_reader::operator()(std::string_view line) {
  simdjson::dom::object json;
  if (state_->parser.parse(line.data(), line.size()).get(json) != simdjson::SUCCESS)
    throw error(errc::malformed, "not a JSON object");
  const entry_fields fields(json);
  entry result{.name = std::string(fields.text("name")),
               .key = std::string(fields.text("key")),
               .as_of = parse_iso_time(fields.text("as_of")),
               .expire_on = parse_iso_time(fields.text("expire_on"))};
  result.payload_class = fields.text("payload_class");
  result.payload = fields.payload();
  return result;
}

}  // namespace holdfast::cli
