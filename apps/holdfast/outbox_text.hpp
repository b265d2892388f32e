#pragma once

/// \file
/// Events of an outbox as text: for people, and as JSON.

#include <holdfast/outbox.hpp>
#include <holdfast/worker.hpp>

#include <string>
#include <string_view>

namespace holdfast::cli {

/// One object: the event, where it is and since when.
[[nodiscard]] std::string record_json(const outbox_record& record, std::string_view kind = "event");

/// The head of a table of records, and one line of it.
[[nodiscard]] std::string_view records_head();
[[nodiscard]] std::string record_line(const outbox_record& record, timestamp now);

[[nodiscard]] std::string stats_json(const outbox_stats& stats);
[[nodiscard]] std::string stats_text(const outbox_stats& stats);

[[nodiscard]] std::string check_json(const check_report& report, bool repaired);
[[nodiscard]] std::string check_text(const check_report& report, bool repaired);

/// What a worker did, in one line; and as JSON.
[[nodiscard]] std::string work_text(const worker_report& report);
[[nodiscard]] std::string work_json(const worker_report& report);

}  // namespace holdfast::cli
