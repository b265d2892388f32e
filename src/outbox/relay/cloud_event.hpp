#pragma once

/// \file
/// What relays pass on of an event beside its payload: the attributes of a CloudEvent 1.0, and the
/// headers that a publisher may choose.

#include <holdfast/worker.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Names without a prefix, for example `id`. Values are UTF-8 and not encoded in any other way.
/// Without `datacontenttype`, which every binding treats in its own way.
[[nodiscard]] std::vector<std::pair<std::string_view, std::string>> cloud_event_attributes(
    const delivery& delivery, std::string_view source);

/// The headers of the event that may be passed on: without those that relays set themselves, those
/// of a connection or proxy, and, unless `credentials` is set, credentials. The views refer to the
/// event.
[[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> headers_to_pass(
    const event& event, bool credentials);

/// Returns the name as receivers compare it: in lower case and with `-` for `_`, because CGI, WSGI
/// and others do not distinguish them.
[[nodiscard]] std::string normalized_name(std::string_view header);

/// False if name or value could inject another header.
[[nodiscard]] bool is_valid_header(std::string_view name, std::string_view value);

/// The encoding of header values in the HTTP and NATS bindings of CloudEvents.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
