#include "arguments.hpp"

#include <holdfast/error.hpp>

#include "base/url.hpp"
#include "text.hpp"

#include <simdjson.h>

#include <cstdint>

namespace holdfast::cli {

namespace {

namespace dom = simdjson::dom;

constexpr std::string_view typed_start = "{\"t\":";

/// Puts the place of the argument before the path that its reader found: `args[1]` and `.items[0]`.
[[noreturn]] void fail_at(const std::string& place, const error& wrong) {
  std::string_view path = wrong.path();
  // A value that is read alone calls itself `value`.
  if (path.starts_with("value")) path.remove_prefix(5);
  throw error(wrong.code(), wrong.message(), {.path = place + std::string(path), .backend_code = wrong.backend_code()});
}

/// No deeper than the parser let through, which is why it may recurse.
key::value from_dom(dom::element element) {
  switch (element.type()) {
    case dom::element_type::NULL_VALUE:
      return {};
    case dom::element_type::BOOL:
      return key::value(bool{element});
    case dom::element_type::INT64:
      return key::value(std::int64_t{element});
    case dom::element_type::UINT64:
      return key::value(std::uint64_t{element});
    case dom::element_type::DOUBLE:
      return key::value(double{element});
    case dom::element_type::STRING:
      return key::value(std::string_view(element));
    case dom::element_type::ARRAY: {
      key::list items;
      for (const dom::element each : dom::array(element)) items.items.push_back(from_dom(each));
      return key::value(std::move(items));
    }
    case dom::element_type::OBJECT: {
      key::map items;
      for (const dom::key_value_pair each : dom::object(element)) {
        items.items.emplace_back(key::value(std::string_view(each.key)), from_dom(each.value));
      }
      return key::value(std::move(items));
    }
  }
  throw error(errc::internal, "JSON of an unknown kind");
}

class argument_reader {
 public:
  argument_reader(key::scheme meant_for, bool plain_json) : typed_(meant_for), plain_json_(plain_json) {}

  key::value read(const std::string& word, const std::string& place) {
    try {
      if (word.starts_with(typed_start)) return typed_.read(word);
      if (plain_json_) return plain(word);
    } catch (const error& wrong) {
      fail_at(place, wrong);
    }
    return key::value(word);
  }

 private:
  key::value plain(const std::string& word) {
    dom::element root;
    simdjson::error_code wrong = parser_.allocate(word.size() + 1, key::max_height);
    if (wrong == simdjson::SUCCESS) wrong = parser_.parse(word).get(root);
    switch (wrong) {
      case simdjson::SUCCESS:
        return from_dom(root);
      case simdjson::DEPTH_ERROR:
        throw error(errc::too_deep, "nested deeper than " + std::to_string(key::max_height) + " levels; nest it less deeply");
      case simdjson::UTF8_ERROR:
        throw error(errc::ill_formed_text, "not well-formed UTF-8; pass UTF-8");
      case simdjson::NUMBER_ERROR:
        throw error(errc::out_of_range,
                    "a number is misspelt, or outside of 64 bits; write a large one as {\"t\":\"int\",\"v\":\"<digits>\"}");
      default:
        throw error(errc::malformed,
                    "'" + shortened(without_secrets(word)) + "' is not JSON; put text between double quotes, or leave out --json-args");
    }
  }

  static std::string shortened(const std::string& word) {
    constexpr std::size_t enough = 40;
    if (word.size() <= enough) return word;
    std::size_t cut = enough;
    while (cut > 0 && (static_cast<unsigned char>(word[cut]) & 0xc0U) == 0x80U) --cut;
    return word.substr(0, cut) + "...";
  }

  key::typed_json_reader typed_;
  dom::parser parser_;
  bool plain_json_;
};

}  // namespace

call_arguments read_arguments(const std::vector<std::string>& words, key::scheme meant_for, bool plain_json) {
  argument_reader reader(meant_for, plain_json);
  call_arguments values;
  values.reserve(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) values.push_back(reader.read(words[i], "args[" + std::to_string(i) + "]"));
  return values;
}

keyword_arguments read_keywords(const std::vector<std::string>& words, key::scheme meant_for, bool plain_json) {
  argument_reader reader(meant_for, plain_json);
  keyword_arguments values;
  values.reserve(words.size());
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw error(errc::invalid_argument, "--kwarg '" + word + "' is not name=value; write for example --kwarg active=true");
    }
    std::string name = word.substr(0, equals);
    key::value item = reader.read(word.substr(equals + 1), "kwargs[" + json_string(name) + "]");
    values.emplace_back(std::move(name), std::move(item));
  }
  return values;
}

}  // namespace holdfast::cli
