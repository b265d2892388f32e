#include "store/doctor/table_findings.hpp"

#include "sql/dialect.hpp"
#include "store/doctor/repair_statements.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using sql::dialect_id;

/// A column of the published table.
struct published_column {
  std::string_view name;
  bool time = false;
  bool part_of_key = false;
  std::size_t max_length = 0;  ///< characters that the store accepts; 0: no limit
  bool nullable = false;       ///< a tombstone has neither payload nor class
};
constexpr std::array<published_column, 6> published_columns{
    {{.name = "FAILOVER_NAME", .part_of_key = true, .max_length = max_name_length},
     {.name = "FAILOVER_KEY", .part_of_key = true, .max_length = max_key_length},
     {.name = "AS_OF", .time = true},
     {.name = "EXPIRE_ON", .time = true},
     {.name = "PAYLOAD", .nullable = true},
     {.name = "PAYLOAD_CLASS", .max_length = max_class_length, .nullable = true}}};

/// A shorter payload column is reported.
constexpr std::int64_t ample_payload_length = std::int64_t{1} << 20U;
/// The shortest payload column of any published schema.
constexpr std::int64_t shortest_payload_length = 2000;

bool is_published(std::string_view name) {
  return std::ranges::find(published_columns, name, &published_column::name) !=
         published_columns.end();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

/// Returns whether the column stores the store's values unchanged.
bool has_usable_type(const published_column& published, const column_facts& column,
                     const server_facts& server, const store_options& options) {
  if (column.kind == column_kind::anything) return true;
  if (published.time)
    return column.kind == column_kind::time ||
           (column.kind == column_kind::local_time && !options.zone.empty());
  if (published.name == "PAYLOAD" && server.dialect != dialect_id::sqlite &&
      options.payload == payload_column::bytes)
    return column.kind == column_kind::bytes;
  return column.kind == column_kind::text ||
         (column.kind == column_kind::bytes && sql::is_mysql(server.dialect));
}

/// Collects the findings about one table.
class table_examination {
 public:
  table_examination(const table_facts& table, const server_facts& server, const std::string& prefix,
                    const store_options& options)
      : table_(table),
        server_(server),
        options_(options),
        repair_(table, server, prefix, options) {}

  std::vector<probe_finding> run() && {
    if (!table_.exists) {
      add("table", severity::failing, "the table " + table_.name + " does not exist",
          repair_.create_table());
    } else if (table_.storage == "no table") {
      add("table", severity::wrong, table_.name + " is a view or similar, not a table", {},
          "choose another prefix, or drop it");
    } else {
      check_columns();
      if (has_all_columns_) check_indexes();
      check_storage();
    }
    return std::move(findings_);
  }

 private:
  void add(std::string code, severity level, std::string problem, std::vector<std::string> sql,
           std::string advice = {}) {
    findings_.push_back({.code = std::move(code),
                         .severity = level,
                         .problem = std::move(problem),
                         .sql = std::move(sql),
                         .advice = std::move(advice)});
  }

  void check_columns() {
    for (const auto& published : published_columns) {
      const auto it = std::ranges::find(table_.columns, published.name, &column_facts::name);
      if (it == table_.columns.end()) add_missing_column(published);
      else check_column(published, *it);
    }
    for (const auto& column : table_.columns) {
      if (!column.needs_value || is_published(column.name)) continue;
      add("extra_column", severity::wrong,
          "the column " + column.name + " of " + table_.name +
              " requires a value, which no entry has",
          repair_.allow_null(column));
    }
  }

  void add_missing_column(const published_column& published) {
    has_all_columns_ = false;
    auto sql = repair_.add_column(published.name);
    const bool repairable = !sql.empty();
    add("column", severity::wrong,
        "the table " + table_.name + " has no column " + std::string(published.name),
        std::move(sql), repairable ? "" : "it is another kind of table: choose another prefix");
  }

  void check_column(const published_column& published, const column_facts& column) {
    const std::string name = "the column " + column.name + " of " + table_.name;
    if (!has_usable_type(published, column, server_, options_))
      return add_wrong_type(published, column, name);
    if (published.time && column.digits < 6) {
      return add("time_digits", severity::wrong,
                 name + " stores only " + std::to_string(column.digits) +
                     " digits of a second: different versions look equal, and none can be erased",
                 repair_.change_column(column));
    }
    if (published.time && column.type.starts_with("timestamp") && sql::is_mysql(server_.dialect)) {
      add("time_range", severity::warning,
          name + " cannot store times after January 2038; entries that expire later are refused",
          repair_.change_column(column));
    }
    if (published.part_of_key && !column.exact) {
      return add("collation", severity::wrong,
                 name + " (" + (column.collation.empty() ? column.type : column.collation) +
                     ") treats different keys as equal: they would overwrite each other",
                 repair_.change_column(column));
    }
    if (!column.whole_unicode && !published.time) {
      add("charset", severity::warning,
          name + " (" + column.collation +
              ") cannot store every character; entries with such characters are refused",
          repair_.change_column(column));
    }
    if (published.nullable && column.not_null) {
      add("not_null", severity::wrong, name + " is NOT NULL and therefore refuses tombstones",
          repair_.change_column(column));
    }
    check_length(published, column, name);
  }

  void check_length(const published_column& published, const column_facts& column,
                    const std::string& name) {
    if (column.length == 0) return;
    if (column.length < static_cast<std::int64_t>(published.max_length)) {
      add("length", severity::warning,
          name + " holds " + std::to_string(column.length) + " characters, the published one " +
              std::to_string(published.max_length) + "; longer values are refused",
          repair_.change_column(column));
    }
    if (published.name == "PAYLOAD" && column.length < ample_payload_length) {
      const bool characters = column.kind == column_kind::text && !column.type.ends_with("text");
      add("payload_size",
          column.length < shortest_payload_length ? severity::warning : severity::note,
          name + " (" + column.type + ") refuses payloads above " + std::to_string(column.length) +
              (characters ? " characters" : " bytes"),
          repair_.change_column(column));
    }
  }

  void add_wrong_type(const published_column& published, const column_facts& column,
                      const std::string& name) {
    if (published.time && column.kind == column_kind::local_time) {
      return add("time_zone", severity::wrong,
                 name +
                     " has no time zone, so its values are ambiguous; the statement reads them as "
                     "UTC (set store_options::zone for another zone)",
                 repair_.change_column(column));
    }
    if (published.name == "PAYLOAD" &&
        (column.kind == column_kind::text || column.kind == column_kind::bytes)) {
      const bool bytes = options_.payload == payload_column::bytes;
      return add("payload_type", severity::wrong,
                 name + " is " + column.type + ", but the store is opened for " +
                     (bytes ? "bytes" : "text") +
                     " (payload_column::" + (bytes ? "text" : "bytes") + " would match it)",
                 repair_.change_column(column));
    }
    add("column_type", severity::wrong,
        name + " is " + column.type + ", which does not store values unchanged",
        repair_.change_column(column));
  }

  /// Whether the index is unique on published columns that do not include the whole key.
  static bool is_wrong_key(const index_facts& index) {
    const auto is_published_column = [](std::string_view column) {
      return is_published(column.substr(0, column.find('(')));
    };
    return index.unique && !index.has_key_columns() &&
           std::ranges::all_of(index.columns, is_published_column);
  }

  void check_indexes() {
    bool has_wrong_key = false;
    for (const auto& index : table_.indexes) {
      if (!is_wrong_key(index)) continue;
      has_wrong_key = true;
      add("key_in_the_way", severity::wrong,
          "the key of " + table_.name + " on (" + joined(index.columns) +
              ") lets entries replace or refuse each other; it must be on (FAILOVER_NAME, "
              "FAILOVER_KEY)",
          repair_.replace_key(index));
    }
    if (!has_wrong_key && std::ranges::none_of(table_.indexes, &index_facts::is_key)) {
      add("primary_key", severity::wrong,
          "the table " + table_.name + " has no primary key on (FAILOVER_NAME, FAILOVER_KEY)",
          repair_.add_key());
    }
    const bool has_expire_index = std::ranges::any_of(table_.indexes, [](const index_facts& index) {
      return !index.columns.empty() && index.columns.front() == "EXPIRE_ON";
    });
    if (!has_expire_index) {
      add("expire_index", severity::warning,
          "the table " + table_.name +
              " has no index that starts with EXPIRE_ON: every cleanup reads the whole table",
          repair_.create_index());
    }
  }

  void check_storage() {
    if (sql::is_mysql(server_.dialect) && table_.storage != "InnoDB") {
      add("engine", severity::wrong,
          "the table " + table_.name + " uses the storage engine " + table_.storage +
              ", which has no transactions and loses writes in a crash",
          repair_.change_storage());
    }
    if (table_.storage == "unlogged") {
      add("unlogged", severity::warning,
          "the table " + table_.name + " is unlogged: it is empty after a crash",
          repair_.change_storage());
    }
  }

  const table_facts& table_;
  const server_facts& server_;
  const store_options& options_;
  repair_statements repair_;
  bool has_all_columns_ = true;
  std::vector<probe_finding> findings_{};
};

}  // namespace

std::vector<probe_finding> find_table_problems(const table_facts& table, const server_facts& server,
                                               const std::string& prefix,
                                               const store_options& options) {
  return table_examination(table, server, prefix, options).run();
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
