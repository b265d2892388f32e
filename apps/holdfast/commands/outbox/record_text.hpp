#pragma once

/// \file
/// Events, statistics and reports of an outbox as text and as JSON.

#include <holdfast/outbox.hpp>
#include <holdfast/worker.hpp>

#include "terminal/output.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// `kind` is `event` or `ticket`.
[[nodiscard]] std::string record_json(const outbox_record& record, std::string_view kind = "event");

/// A table of records: its header, and one row. What went wrong is a note below the row.
[[nodiscard]] std::vector<std::string> record_header();
[[nodiscard]] std::vector<std::string> record_row(const outbox_record& record, timestamp now);
/// A row without its table, with its note.
[[nodiscard]] std::string record_line(const outbox_record& record, timestamp now);

[[nodiscard]] std::string stats_json(const outbox_stats& stats,
                                     const std::vector<recurrence>& recurring);
void print_stats(output& out, const outbox_stats& stats, const std::vector<recurrence>& recurring);

/// A recurring event as one JSON object.
[[nodiscard]] std::string recurrence_json(const recurrence& recurring);
/// A table of recurring events with a header; nothing if there are none.
void print_recurrences(output& out, const std::vector<recurrence>& recurring);

[[nodiscard]] std::string check_report_json(const check_report& report, bool repaired);
[[nodiscard]] std::string check_report_text(const check_report& report, bool repaired);

/// The counters of a worker, in one line.
[[nodiscard]] std::string worker_report_text(const worker_report& report);
[[nodiscard]] std::string worker_report_json(const worker_report& report);

}  // namespace holdfast::cli
