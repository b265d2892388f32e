#include <holdfast/key/batch.hpp>
#include <holdfast/key/interop.hpp>

#include "key/digest.hpp"
#include "key/typed_json_value.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

using simdjson::dom::element;

namespace {

/// Appends a JSON text. What is in it is well-formed UTF-8 already. Characters that some readers take for the end of a line
/// (U+0085, U+2028, U+2029) are escaped: an answer is one line for everybody.
void append_json(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\xC2':
        if (text[i + 1] == '\x85') out += "\\u0085", ++i;
        else out += c;
        break;
      case '\xE2':
        if (text[i + 1] == '\x80' && (text[i + 2] == '\xA8' || text[i + 2] == '\xA9')) {
          out += text[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
          i += 2;
        } else {
          out += c;
        }
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) out += "\\u00" + to_hex(std::string_view(&c, 1));
        else out += c;
    }
  }
  out += '"';
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out += ",\"";
  out += name;
  out += "\":";
  append_json(out, text);
}

void append_hex_member(std::string& out, std::string_view name, std::string_view bytes) {
  out += ",\"";
  out += name;
  out += "\":\"";
  const auto at = out.size();
  out.resize(at + bytes.size() * 2);
  to_hex(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), out.data() + at);
  out += '"';
}

/// The end of the JSON text or number that begins at `at`.
std::size_t end_of_scalar(std::string_view json, std::size_t at) {
  if (json[at] != '"') return std::min(json.find_first_not_of("+-.0123456789eE", at), json.size());
  for (std::size_t i = at + 1; i < json.size(); ++i) {
    if (json[i] == '\\') ++i;
    else if (json[i] == '"') return i + 1;
  }
  return json.size();
}

/// The id as it goes into the answer.
std::string shown_id(const element& id) {
  std::string_view text;
  if (id.get(text) != simdjson::SUCCESS) return simdjson::minify(id);
  std::string quoted;
  append_json(quoted, text);
  return quoted;
}

/// A line that did not parse may still say which case it was: the member "id" of its outermost object, as JSON; else null.
std::string id_of_broken_line(std::string_view line) {
  constexpr std::string_view white = " \t\r";
  std::size_t depth = 0;
  for (std::size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && depth > 0) --depth;
    if (c != '"') {
      ++i;
      continue;
    }
    const auto end = end_of_scalar(line, i);
    const bool is_id = depth == 1 && line.substr(i, end - i) == "\"id\"";
    i = end;
    const auto colon = line.find_first_not_of(white, end);
    if (!is_id || colon == std::string_view::npos || line[colon] != ':') continue;
    const auto begin = line.find_first_not_of(white, colon + 1);
    if (begin == std::string_view::npos) break;
    const auto id = line.substr(begin, end_of_scalar(line, begin) - begin);
    // Only what is JSON by itself goes into the answer.
    simdjson::dom::parser parser;
    element parsed;
    if (!id.empty() && parser.parse(id.data(), id.size()).get(parsed) == simdjson::SUCCESS) return shown_id(parsed);
    break;
  }
  return "null";
}

}  // namespace

struct batch::state {
  batch_options options;
  typed_reader reader;
  simdjson::dom::parser parser{};
  std::string padded{};  // the line with the room behind it that the parser needs
  std::vector<value> args{};
  std::vector<std::pair<std::string, value>> keywords{};

  void answer(const element& root, std::string& out);
  void answer_failover(const simdjson::dom::object& request, std::string& out);
  void answer_cachekit(const simdjson::dom::object& request, std::string& out);
  void answer_interop(const simdjson::dom::object& request, std::string& out);
  void answer_value(const simdjson::dom::object& request, std::string& out);

  void read_args(const simdjson::dom::object& request, bool may_be_null);
  void read_keywords(const simdjson::dom::object& request);
};

namespace {

std::string_view text_or(const simdjson::dom::object& request, const char* name, std::optional<std::string_view> fallback) {
  element found;
  if (request[name].get(found) != simdjson::SUCCESS || found.is_null()) {
    if (fallback) return *fallback;
    throw error(errc::invalid_argument, std::string("the case needs a text \"") + name + "\"", {.path = name});
  }
  std::string_view text;
  if (found.get(text) != simdjson::SUCCESS) throw error(errc::invalid_argument, "expected a text", {.path = name});
  return text;
}

/// A serializer that is null is not one: refused today, taken for any unknown one by the older dialects.
std::string_view serializer_of(const simdjson::dom::object& request, dialect edition) {
  element found;
  const bool is_null = request["serializer"].get(found) == simdjson::SUCCESS && found.is_null();
  if (is_null && edition == dialect::current) throw error(errc::invalid_argument, "expected the serializer's name", {.path = "serializer"});
  return is_null ? std::string_view() : text_or(request, "serializer", "std");
}

bool bool_or(const simdjson::dom::object& request, const char* name, bool fallback) {
  element found;
  if (request[name].get(found) != simdjson::SUCCESS) return fallback;
  bool truth = false;
  if (found.get(truth) != simdjson::SUCCESS) throw error(errc::invalid_argument, "expected true or false", {.path = name});
  return truth;
}

}  // namespace

void batch::state::read_args(const simdjson::dom::object& request, bool may_be_null) {
  args.clear();
  element found;
  if (request["args"].get(found) != simdjson::SUCCESS)
    throw error(errc::invalid_argument, "the case needs an array \"args\"", {.path = "args"});
  if (found.is_null() && may_be_null) return;
  simdjson::dom::array json;
  if (found.get(json) != simdjson::SUCCESS) throw error(errc::invalid_argument, "expected an array of typed values", {.path = "args"});
  for (const element each : json) args.push_back(reader.read(each, "args[" + std::to_string(args.size()) + "]"));
}

void batch::state::read_keywords(const simdjson::dom::object& request) {
  keywords.clear();
  element found;
  if (request["kwargs"].get(found) != simdjson::SUCCESS || found.is_null()) return;
  simdjson::dom::array json;
  if (found.get(json) != simdjson::SUCCESS) throw error(errc::invalid_argument, "expected an array of [name, value]", {.path = "kwargs"});
  for (const element each : json) {
    simdjson::dom::array pair;
    std::string_view name;
    if (each.get(pair) != simdjson::SUCCESS || pair.size() != 2 || pair.at(0).get(name) != simdjson::SUCCESS) {
      throw error(errc::invalid_argument, "expected [name, value]", {.path = "kwargs[" + std::to_string(keywords.size()) + "]"});
    }
    keywords.emplace_back(name, reader.read(pair.at(1), "kwargs[\"" + std::string(name) + "\"]"));
  }
}

void batch::state::answer_failover(const simdjson::dom::object& request, std::string& out) {
  read_args(request, true);
  const point_info point{text_or(request, "name", std::nullopt), text_or(request, "domain", "")};
  const auto name = effective_name(point);
  if (name.empty()) throw error(errc::invalid_argument, "a point needs a name", {.path = "name"});
  const std::function<void(std::string_view)> warn = [&](std::string_view type) {
    if (options.on_unstable) options.on_unstable(point.name, type);
  };
  const detail::failover_view how{.name = point.name, .effective_name = name, .style = options.style, .on_unstable = &warn};
  const auto raw = detail::failover_raw(how, [&](writer& w) { detail::write_call(w, args); });
  append_member(out, "raw_key", raw);
  append_member(out, "uuid", detail::failover_key_of_raw(how, raw));
}

void batch::state::answer_cachekit(const simdjson::dom::object& request, std::string& out) {
  const cachekit_keys keys({.ns = text_or(request, "namespace", ""),
                            .module = text_or(request, "module", std::nullopt),
                            .qualname = text_or(request, "qualname", std::nullopt),
                            .integrity = bool_or(request, "integrity", true),
                            .serializer = serializer_of(request, options.dialect),
                            .dialect = options.dialect});
  read_args(request, false);
  read_keywords(request);
  const auto made = keys.explain(args, keywords);
  append_member(out, "key", made.key);
  append_member(out, "args_hash", made.args_hash);
  append_hex_member(out, "msgpack_hex", made.message_pack);
}

void batch::state::answer_interop(const simdjson::dom::object& request, std::string& out) {
  const interop_keys keys(text_or(request, "namespace", std::nullopt), text_or(request, "operation", std::nullopt));
  read_args(request, false);
  const auto made = keys.explain(args);
  append_member(out, "key", made.key);
  append_member(out, "args_hash", made.args_hash);
  append_hex_member(out, "canonical_hex", made.message_pack);
}

void batch::state::answer_value(const simdjson::dom::object& request, std::string& out) {
  element found;
  if (request["value"].get(found) != simdjson::SUCCESS)
    throw error(errc::invalid_argument, "the case needs a typed \"value\"", {.path = "value"});
  const auto bytes = encode_value(reader.read(found, "value"));
  append_hex_member(out, "hex", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void batch::state::answer(const element& root, std::string& out) {
  simdjson::dom::object request;
  if (root.get(request) != simdjson::SUCCESS) throw error(errc::invalid_argument, "a case must be a JSON object");
  switch (options.scheme) {
    case scheme::failover:
      return answer_failover(request, out);
    case scheme::cachekit_auto:
      return answer_cachekit(request, out);
    case scheme::interop:
      return answer_interop(request, out);
    case scheme::interop_value:
      return answer_value(request, out);
  }
}

batch::batch(batch_options options) {
  typed_reader reader(options.scheme);
  state_ = std::make_unique<state>(state{.options = std::move(options), .reader = std::move(reader)});
}
batch::batch(batch&&) noexcept = default;
batch& batch::operator=(batch&&) noexcept = default;
batch::~batch() = default;

void batch::run(std::string_view line, std::string& out) {
  state& s = *state_;
  std::string id = "null";
  std::size_t after_id = 0;
  const auto begin = [&] {
    out += "{\"id\":";
    out += id;
    after_id = out.size();
  };
  const auto refuse = [&](std::string_view code, std::string_view path, std::string_view message) {
    out.resize(after_id);  // whatever part of an answer was written
    out += R"(,"error":{"code":)";
    append_json(out, code);
    append_member(out, "path", path);
    append_member(out, "message", message);
    out += '}';
  };
  try {
    if (s.padded.size() < line.size() + simdjson::SIMDJSON_PADDING) s.padded.resize(line.size() * 2 + simdjson::SIMDJSON_PADDING);
    std::copy(line.begin(), line.end(), s.padded.begin());
    std::memset(s.padded.data() + line.size(), 0, simdjson::SIMDJSON_PADDING);
    if (s.parser.max_depth() != max_json_depth || s.parser.capacity() < line.size()) {
      if (const auto failed = s.parser.allocate(s.padded.size(), max_json_depth)) throw json_error(failed);
    }
    element root;
    if (const auto failed = s.parser.parse(s.padded.data(), line.size(), false).get(root)) {
      id = id_of_broken_line(line);
      begin();
      const auto broken = json_error(failed);
      refuse(to_string(broken.code()), "", broken.message());
    } else {
      element given;
      if (root["id"].get(given) == simdjson::SUCCESS) id = shown_id(given);
      begin();
      s.answer(root, out);
    }
  } catch (const error& e) {
    if (after_id == 0) begin();
    refuse(to_string(e.code()), e.path(), e.message());
  } catch (const std::exception& e) {
    if (after_id == 0) begin();
    refuse(to_string(errc::internal), "", e.what());
  }
  out += "}\n";
}

}  // namespace HOLDFAST_NAMESPACE::key
