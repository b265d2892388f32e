#include <holdfast/key/batch.hpp>
#include <holdfast/key/interop.hpp>

#include "base/hex.hpp"
#include "key/json_string.hpp"
#include "key/typed_reader.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

using namespace holdfast::detail::key;
using simdjson::dom::element;

namespace {

// ---- writing an answer

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out += ",\"";
  out += name;
  out += "\":";
  append_json_string(out, text);
}

void append_hex_member(std::string& out, std::string_view name, std::string_view bytes) {
  out += ",\"";
  out += name;
  out += "\":\"";
  holdfast::detail::append_hex(out, bytes);
  out += '"';
}

// ---- the id of a case

/// The id as JSON for the answer.
std::string id_text(const element& id) {
  std::string_view text;
  if (id.get(text) != simdjson::SUCCESS) return simdjson::minify(id);
  std::string json;
  append_json_string(json, text);
  return json;
}

/// The end of the JSON string or number that begins at `begin`.
std::size_t scalar_end(std::string_view json, std::size_t begin) {
  if (json[begin] != '"')
    return std::min(json.find_first_not_of("+-.0123456789eE", begin), json.size());
  for (std::size_t i = begin + 1; i < json.size(); ++i) {
    if (json[i] == '\\') ++i;
    else if (json[i] == '"') return i + 1;
  }
  return json.size();
}

/// Finds the member "id" of the outermost object in a line that is not valid JSON. Returns the id
/// as JSON, or `null`.
std::string id_of_broken_line(std::string_view line) {
  constexpr std::string_view white_space = " \t\r";
  std::size_t depth = 0;
  for (std::size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && depth > 0) --depth;
    if (c != '"') {
      ++i;
      continue;
    }
    const auto end = scalar_end(line, i);
    const bool is_id = depth == 1 && line.substr(i, end - i) == "\"id\"";
    i = end;
    const auto colon = line.find_first_not_of(white_space, end);
    if (!is_id || colon == std::string_view::npos || line[colon] != ':') continue;
    const auto begin = line.find_first_not_of(white_space, colon + 1);
    if (begin == std::string_view::npos) break;
    const auto id = line.substr(begin, scalar_end(line, begin) - begin);
    // The id goes into the answer, so it must be valid JSON.
    simdjson::dom::parser parser;
    element parsed;
    if (!id.empty() && parser.parse(id.data(), id.size()).get(parsed) == simdjson::SUCCESS)
      return id_text(parsed);
    break;
  }
  return "null";
}

// ---- members of a case

[[noreturn]] void fail_member(const char* name, const std::string& message) {
  throw error(errc::invalid_argument, message, {.path = name});
}

std::string_view text_member(const simdjson::dom::object& request, const char* name,
                             std::optional<std::string_view> fallback = std::nullopt) {
  element member;
  if (request[name].get(member) != simdjson::SUCCESS || member.is_null()) {
    if (fallback) return *fallback;
    fail_member(name, std::string("the case needs a text \"") + name + "\"");
  }
  std::string_view text;
  if (member.get(text) != simdjson::SUCCESS) fail_member(name, "expected a text");
  return text;
}

bool bool_member(const simdjson::dom::object& request, const char* name, bool fallback) {
  element member;
  if (request[name].get(member) != simdjson::SUCCESS) return fallback;
  bool truth = false;
  if (member.get(truth) != simdjson::SUCCESS) fail_member(name, "expected true or false");
  return truth;
}

/// The current dialect refuses null as a serializer; the older ones treat it as an unknown
/// serializer.
std::string_view serializer_member(const simdjson::dom::object& request, dialect version) {
  element member;
  const bool is_null = request["serializer"].get(member) == simdjson::SUCCESS && member.is_null();
  if (!is_null) return text_member(request, "serializer", "std");
  if (version == dialect::current) fail_member("serializer", "expected the serializer's name");
  return {};
}

}  // namespace

struct batch::state {
  batch_options options;
  typed_reader reader;
  simdjson::dom::parser parser{};
  std::string padded_line{};  // with the padding that the parser needs
  std::vector<value> args{};
  std::vector<std::pair<std::string, value>> keywords{};

  simdjson::error_code parse(std::string_view line, element& root);
  void answer(const element& root, std::string& out);

 private:
  void answer_failover(const simdjson::dom::object& request, std::string& out);
  void answer_cachekit(const simdjson::dom::object& request, std::string& out);
  void answer_interop(const simdjson::dom::object& request, std::string& out);
  void answer_value(const simdjson::dom::object& request, std::string& out);

  void read_args(const simdjson::dom::object& request, bool may_be_null);
  void read_keywords(const simdjson::dom::object& request);
};

void batch::state::read_args(const simdjson::dom::object& request, bool may_be_null) {
  args.clear();
  element member;
  if (request["args"].get(member) != simdjson::SUCCESS)
    fail_member("args", "the case needs an array \"args\"");
  if (member.is_null() && may_be_null) return;
  simdjson::dom::array json;
  if (member.get(json) != simdjson::SUCCESS)
    fail_member("args", "expected an array of typed values");
  for (const element arg : json)
    args.push_back(reader.read(arg, "args[" + std::to_string(args.size()) + "]"));
}

void batch::state::read_keywords(const simdjson::dom::object& request) {
  keywords.clear();
  element member;
  if (request["kwargs"].get(member) != simdjson::SUCCESS || member.is_null()) return;
  simdjson::dom::array json;
  if (member.get(json) != simdjson::SUCCESS)
    fail_member("kwargs", "expected an array of [name, value]");
  for (const element keyword : json) {
    simdjson::dom::array pair;
    std::string_view name;
    if (keyword.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get(name) != simdjson::SUCCESS) {
      throw error(errc::invalid_argument, "expected [name, value]",
                  {.path = "kwargs[" + std::to_string(keywords.size()) + "]"});
    }
    keywords.emplace_back(name, reader.read(pair.at(1), "kwargs[\"" + std::string(name) + "\"]"));
  }
}

void batch::state::answer_failover(const simdjson::dom::object& request, std::string& out) {
  read_args(request, true);
  const point_info point{text_member(request, "name"), text_member(request, "domain", "")};
  const auto name = effective_name(point);
  if (name.empty()) fail_member("name", "a point needs a name");
  const std::function<void(std::string_view)> on_unstable = [&](std::string_view type) {
    if (options.on_unstable) options.on_unstable(point.name, type);
  };
  const detail::failover_view view{.name = point.name,
                                   .effective_name = name,
                                   .style = options.style,
                                   .on_unstable = &on_unstable};
  const auto raw = detail::failover_raw(view, [&](writer& w) { detail::write_call(w, args); });
  append_member(out, "raw_key", raw);
  append_member(out, "uuid", detail::failover_key_of_raw(view, raw));
}

void batch::state::answer_cachekit(const simdjson::dom::object& request, std::string& out) {
  const cachekit_keys keys({.ns = text_member(request, "namespace", ""),
                            .module = text_member(request, "module"),
                            .qualname = text_member(request, "qualname"),
                            .integrity = bool_member(request, "integrity", true),
                            .serializer = serializer_member(request, options.dialect),
                            .dialect = options.dialect});
  read_args(request, false);
  read_keywords(request);
  const auto result = keys.explain(args, keywords);
  append_member(out, "key", result.key);
  append_member(out, "args_hash", result.args_hash);
  append_hex_member(out, "msgpack_hex", result.message_pack);
}

void batch::state::answer_interop(const simdjson::dom::object& request, std::string& out) {
  const interop_keys keys(text_member(request, "namespace"), text_member(request, "operation"));
  read_args(request, false);
  const auto result = keys.explain(args);
  append_member(out, "key", result.key);
  append_member(out, "args_hash", result.args_hash);
  append_hex_member(out, "canonical_hex", result.message_pack);
}

void batch::state::answer_value(const simdjson::dom::object& request, std::string& out) {
  element member;
  if (request["value"].get(member) != simdjson::SUCCESS)
    fail_member("value", "the case needs a typed \"value\"");
  const auto bytes = encode_value(reader.read(member, "value"));
  append_hex_member(out, "hex", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void batch::state::answer(const element& root, std::string& out) {
  simdjson::dom::object request;
  if (root.get(request) != simdjson::SUCCESS)
    throw error(errc::invalid_argument, "a case must be a JSON object");
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

simdjson::error_code batch::state::parse(std::string_view line, element& root) {
  if (padded_line.size() < line.size() + simdjson::SIMDJSON_PADDING)
    padded_line.resize(line.size() * 2 + simdjson::SIMDJSON_PADDING);
  std::copy(line.begin(), line.end(), padded_line.begin());
  std::memset(padded_line.data() + line.size(), 0, simdjson::SIMDJSON_PADDING);
  if (parser.max_depth() != max_json_depth || parser.capacity() < line.size()) {
    if (const auto failed = parser.allocate(padded_line.size(), max_json_depth))
      throw json_error(failed);
  }
  return parser.parse(padded_line.data(), line.size(), false).get(root);
}

batch::batch(batch_options options) {
  typed_reader reader(options.scheme);
  state_ =
      std::make_unique<state>(state{.options = std::move(options), .reader = std::move(reader)});
}
batch::batch(batch&&) noexcept = default;
batch& batch::operator=(batch&&) noexcept = default;
batch::~batch() = default;

void batch::run(std::string_view line, std::string& out) {
  std::string id = "null";
  std::size_t after_id = 0;
  const auto begin = [&] {
    out += "{\"id\":";
    out += id;
    after_id = out.size();
  };
  const auto refuse = [&](errc code, std::string_view path, std::string_view message) {
    if (after_id == 0) begin();
    out.resize(after_id);  // removes a partial answer
    out += R"(,"error":{"code":)";
    append_json_string(out, to_string(code));
    append_member(out, "path", path);
    append_member(out, "message", message);
    out += '}';
  };
  try {
    element root;
    if (const auto failed = state_->parse(line, root)) {
      id = id_of_broken_line(line);
      throw json_error(failed);
    }
    element id_member;
    if (root["id"].get(id_member) == simdjson::SUCCESS) id = id_text(id_member);
    begin();
    state_->answer(root, out);
  } catch (const error& e) {
    refuse(e.code(), e.path(), e.message());
  } catch (const std::exception& e) {
    refuse(errc::internal, "", e.what());
  }
  out += "}\n";
}

}  // namespace HOLDFAST_NAMESPACE::key
