#include "terminal/arguments.hpp"

#include <holdfast/error.hpp>

#include "base/url.hpp"
#include "base/utf8.hpp"
#include "terminal/text.hpp"

#include <simdjson.h>

#include <cstdint>

namespace holdfast::cli {

namespace {

namespace dom = simdjson::dom;

constexpr std::string_view typed_start = "{\"t\":";

/// Throws `cause` with the name of the argument before its path: `args[1]` and `.items[0]`.
[[noreturn]] void rethrow_for_argument(const std::string& argument, const error& cause) {
  std::string_view path = cause.path();
  // The reader of a single value calls it `value`.
  if (path.starts_with("value")) path.remove_prefix(5);
  throw error(cause.code(), cause.message(),
              {.path = argument + std::string(path), .backend_code = cause.backend_code()});
}

/// Recursion is safe: the parser limits the depth.
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
      for (const dom::element item : dom::array(element)) items.items.push_back(from_dom(item));
      return key::value(std::move(items));
    }
    case dom::element_type::OBJECT: {
      key::map items;
      for (const dom::key_value_pair field : dom::object(element))
        items.items.emplace_back(key::value(std::string_view(field.key)), from_dom(field.value));
      return key::value(std::move(items));
    }
  }
  throw error(errc::internal, "unknown type of JSON value");
}

class argument_reader {
 public:
  argument_reader(key::scheme scheme, bool plain_json) : typed_(scheme), plain_json_(plain_json) {}

  /// `argument` is its name in errors.
  key::value read(const std::string& word, const std::string& argument) {
    try {
      if (word.starts_with(typed_start)) return typed_.read(word);
      if (plain_json_) return read_plain(word);
    } catch (const error& failure) {
      rethrow_for_argument(argument, failure);
    }
    return key::value(word);
  }

 private:
  key::value read_plain(const std::string& word) {
    dom::element root;
    simdjson::error_code failure = parser_.allocate(word.size() + 1, key::max_height);
    if (failure == simdjson::SUCCESS) failure = parser_.parse(word).get(root);
    switch (failure) {
      case simdjson::SUCCESS:
        return from_dom(root);
      case simdjson::DEPTH_ERROR:
        throw error(errc::too_deep, "nested deeper than " + std::to_string(key::max_height) +
                                        " levels; nest it less deeply");
      case simdjson::UTF8_ERROR:
        throw error(errc::ill_formed_text, "not well-formed UTF-8; pass UTF-8");
      case simdjson::NUMBER_ERROR:
        throw error(errc::out_of_range,
                    "a number is invalid, or does not fit into 64 bits; write a large one as "
                    "{\"t\":\"int\",\"v\":\"<digits>\"}");
      default:
        throw error(errc::malformed,
                    "'" + shortened(detail::without_secrets(word)) +
                        "' is not JSON; put text between double quotes, or leave out --json-args");
    }
  }

  static std::string shortened(const std::string& word) {
    constexpr std::size_t most = 40;
    if (word.size() <= most) return word;
    // Not within a UTF-8 character.
    std::size_t cut = most;
    while (cut > 0 && detail::continues_code_point(word[cut])) --cut;
    return word.substr(0, cut) + "...";
  }

  key::typed_json_reader typed_;
  dom::parser parser_;
  bool plain_json_;
};

}  // namespace

call_arguments read_arguments(const std::vector<std::string>& words, key::scheme scheme,
                              bool plain_json) {
  argument_reader reader(scheme, plain_json);
  call_arguments values;
  values.reserve(words.size());
  for (std::size_t i = 0; i < words.size(); ++i)
    values.push_back(reader.read(words[i], "args[" + std::to_string(i) + "]"));
  return values;
}

keyword_arguments read_keywords(const std::vector<std::string>& words, key::scheme scheme,
                                bool plain_json) {
  argument_reader reader(scheme, plain_json);
  keyword_arguments values;
  values.reserve(words.size());
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw error(
          errc::invalid_argument,
          "--kwarg '" + word + "' is not name=value; write for example --kwarg active=true");
    }
    std::string name = word.substr(0, equals);
    key::value item = reader.read(word.substr(equals + 1), "kwargs[" + json_string(name) + "]");
    values.emplace_back(std::move(name), std::move(item));
  }
  return values;
}

void require_json_payload(std::string_view text) {
  dom::parser parser;
  dom::element root;
  const auto failure = parser.parse(text.data(), text.size()).get(root);
  if (failure == simdjson::SUCCESS) return;
  throw error(errc::malformed, "the payload is not JSON (" +
                                   std::string(simdjson::error_message(failure)) +
                                   "); correct it, or add --raw");
}

}  // namespace holdfast::cli
