#pragma once

/// \file
/// `holdfast_bench outbox` on SQL: the outbox compared with raw statements on tables with the same
/// columns and indexes, sent with the client library of the database.

#include "bench/outbox/outbox.hpp"

namespace holdfast::bench {

/// Uses its own tables and removes them. Throws holdfast::error.
[[nodiscard]] std::vector<row> measure_sql_outbox(const outbox_bench_options& options);

}  // namespace holdfast::bench
