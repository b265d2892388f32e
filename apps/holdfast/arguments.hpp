#pragma once

/// \file
/// The arguments of a call as a person types them.
///
/// A word that begins with exactly `{"t":` is typed JSON; any other word is text. Where plain JSON was asked for (--json-args), any other
/// word is plain JSON: `42`, `true`, `"x"`, `[1,2]`, `{"a":1}`, `null`. `{ "t":1}`, with a space, is therefore a plain map.

#include <holdfast/key/typed_json.hpp>
#include <holdfast/key/value.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::cli {

/// Shown by --help of every command that takes arguments.
inline constexpr std::string_view argument_rule =
    "An ARG is text, unless it begins with {\"t\": and so is typed JSON: {\"t\":\"int\",\"v\":\"42\"}.\n"
    "With --json-args an ARG is plain JSON instead: 42, true, null, '\"x\"', [1,2], '{\"a\":1}'; typed JSON works there too.";

using call_arguments = std::vector<key::value>;
using keyword_arguments = std::vector<std::pair<std::string, key::value>>;

/// Throws holdfast::error with the path to what was wrong: `args[2].items["a"]`.
[[nodiscard]] call_arguments read_arguments(const std::vector<std::string>& words, key::scheme meant_for, bool plain_json);

/// Reads `name=ARG` words; the first `=` separates.
[[nodiscard]] keyword_arguments read_keywords(const std::vector<std::string>& words, key::scheme meant_for, bool plain_json);

}  // namespace holdfast::cli
