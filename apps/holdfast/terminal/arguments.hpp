#pragma once

/// \file
/// Reads the arguments of a call, and payloads, from words of the command line.
///
/// A word that begins with exactly `{"t":` is typed JSON; any other word is text. With --json-args,
/// any other word is plain JSON: `42`, `true`, `"x"`, `[1,2]`, `{"a":1}`, `null`. `{ "t":1}`, with
/// a space, is therefore a plain map.

#include <holdfast/key/typed_json.hpp>
#include <holdfast/key/value.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::cli {

/// Part of the help of every command that takes arguments.
inline constexpr std::string_view argument_rule =
    "An ARG is text, unless it begins with {\"t\":, which is typed JSON: "
    "{\"t\":\"int\",\"v\":\"42\"}.\n"
    "With --json-args an ARG is plain JSON: 42, true, null, '\"x\"', [1,2], '{\"a\":1}'; or typed "
    "JSON.";

using call_arguments = std::vector<key::value>;
using keyword_arguments = std::vector<std::pair<std::string, key::value>>;

/// Throws holdfast::error with the path of the invalid value: `args[2].items["a"]`.
[[nodiscard]] call_arguments read_arguments(const std::vector<std::string>& words,
                                            key::scheme scheme, bool plain_json);

/// Reads `name=ARG` words. The first `=` is the separator.
[[nodiscard]] keyword_arguments read_keywords(const std::vector<std::string>& words,
                                              key::scheme scheme, bool plain_json);

/// Throws errc::malformed if a payload is not one JSON document.
void require_json_payload(std::string_view text);

}  // namespace holdfast::cli
