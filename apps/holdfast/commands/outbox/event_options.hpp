#pragma once

/// \file
/// Options of the commands that describe an event.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "terminal/arguments.hpp"
#include "terminal/command.hpp"
#include "terminal/exclusive_options.hpp"
#include "terminal/input.hpp"

#include <cstddef>
#include <string>

namespace holdfast::cli {

/// Options that describe an event.
struct event_options {
  option type;
  option key;
  option payload;
  option file;
  option raw;
  option headers;
  option content_type;

  /// With `type_required` false, `read` throws if there is no type.
  explicit event_options(command& cmd, bool type_required = true)
      : type(cmd.value("--type", "T", "Type of the event: ticket.created")),
        key(cmd.value("--key", "K",
                      "Key of the event; events with the same key are delivered in order")),
        payload(cmd.value("--payload", "JSON", "Payload of the event")),
        file(
            cmd.value("--payload-file", "FILE", "File with the payload; -: standard input").file()),
        raw(cmd.flag("--raw", "Accept any text as payload, not only JSON")),
        headers(cmd.values("--header", "NAME=VALUE",
                           "Header for the receiver: traceparent=00-...; repeat for more")),
        content_type(cmd.value("--content-type", "C",
                               "Content type of the payload (default application/json)")) {
    if (type_required) type.required();
  }

  [[nodiscard]] event read() const {
    if (!type.is_set())
      throw error(errc::invalid_argument, "--type is missing; give --type T, or --jsonl FILE");
    constexpr std::size_t largest = std::size_t{64} << 20U;
    require_one("payload", {{payload, "--payload JSON"}, {file, "--payload-file FILE"}});
    event result{.type = type.text(),
                 .key = key.text(),
                 .payload = file.is_set() ? read_small_file(file.text(), largest) : payload.text()};
    if (content_type.is_set()) result.content_type = content_type.text();
    if (!raw.is_set() && result.content_type == "application/json")
      require_json_payload(result.payload);
    for (const auto& header : headers.all()) {
      const auto equals = header.find('=');
      if (equals == std::string::npos || equals == 0)
        throw error(errc::invalid_argument, "--header is '" + header + "'; give NAME=VALUE");
      result.headers[header.substr(0, equals)] = header.substr(equals + 1);
    }
    return result;
  }
};

}  // namespace holdfast::cli
