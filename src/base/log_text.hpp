#pragma once

/// \file
/// Log records as lines of text and of JSON.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include <string>

namespace HOLDFAST_NAMESPACE::detail {

/// `message: reason (field value, ...)`. A field named problem, reason or why is the reason.
/// Control characters are escaped.
[[nodiscard]] HOLDFAST_API std::string log_message(const log_record& record);
/// One JSON object, without a line end.
[[nodiscard]] HOLDFAST_API std::string log_json(const log_record& record, timestamp time);

}  // namespace HOLDFAST_NAMESPACE::detail
