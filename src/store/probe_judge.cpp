#include "sql/dialect.hpp"
#include "store/probe_cures.hpp"
#include "store/probe_facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace HOLDFAST_NAMESPACE::probing {

namespace {

using sql::dialect_id;

/// A column of the published table.
struct wanted_column {
  std::string_view name;
  bool moment = false;
  bool identity = false;     ///< part of the key: compared, so it must be compared exactly
  std::size_t most = 0;      ///< characters that the store accepts
  bool may_be_null = false;  ///< a tombstone has neither payload nor class
};
constexpr std::array<wanted_column, 6> wanted_columns{{{.name = "FAILOVER_NAME", .identity = true, .most = max_name_length},
                                                       {.name = "FAILOVER_KEY", .identity = true, .most = max_key_length},
                                                       {.name = "AS_OF", .moment = true},
                                                       {.name = "EXPIRE_ON", .moment = true},
                                                       {.name = "PAYLOAD", .may_be_null = true},
                                                       {.name = "PAYLOAD_CLASS", .most = max_class_length, .may_be_null = true}}};

/// Below this a payload column is worth a word.
constexpr std::int64_t roomy = std::int64_t{1} << 20U;
/// The smallest payload column that was ever published.
constexpr std::int64_t smallest_published = 2000;

const column* find_column(const table& in, std::string_view name) {
  const auto found = std::find_if(in.columns.begin(), in.columns.end(), [name](const column& each) { return each.name == name; });
  return found == in.columns.end() ? nullptr : &*found;
}

bool is_ours(std::string_view name) {
  return std::any_of(wanted_columns.begin(), wanted_columns.end(), [name](const wanted_column& each) { return each.name == name; });
}

bool holds_key(const index& each) {
  return std::ranges::count(each.columns, "FAILOVER_NAME") == 1 && std::ranges::count(each.columns, "FAILOVER_KEY") == 1;
}

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& each : words) out.append(out.empty() ? "" : ", ").append(each);
  return out;
}

/// Whether the column can hold what the store gives it, as it was given.
bool fits(const wanted_column& wanted, const column& is, const server& of, const store_options& options) {
  if (is.kind == kind::anything) return true;
  if (wanted.moment) return is.kind == kind::moment || (is.kind == kind::local_moment && !options.zone.empty());
  if (wanted.name == "PAYLOAD") {
    if (of.dialect == dialect_id::sqlite) return is.kind == kind::text;
    if (options.payload == payload_column::bytes) return is.kind == kind::bytes;
    return is.kind == kind::text || (is.kind == kind::bytes && is_mysql(of.dialect));
  }
  return is.kind == kind::text || (is.kind == kind::bytes && is_mysql(of.dialect));
}

class table_judge {
 public:
  table_judge(const table& facts, const server& of, const std::string& prefix, const store_options& options)
      : facts_(facts), server_(of), options_(options), cure_(facts, of, prefix, options) {}

  std::vector<probe_finding> findings() && {
    if (!facts_.there) {
      add("table", severity::failing, "the table " + facts_.name + " is not there", cure_.create_table());
      return std::move(found_);
    }
    if (facts_.storage == "no table") {
      add("table", severity::wrong, facts_.name + " is a view or alike, not a table", {}, "choose another prefix, or remove it");
      return std::move(found_);
    }
    look_at_columns();
    if (whole_) look_at_indexes();
    look_at_storage();
    return std::move(found_);
  }

 private:
  void add(std::string code, severity how, std::string problem, std::vector<std::string> sql, std::string advice = {}) {
    found_.push_back(
        {.code = std::move(code), .severity = how, .problem = std::move(problem), .sql = std::move(sql), .advice = std::move(advice)});
  }

  void look_at_columns() {
    for (const auto& wanted : wanted_columns) {
      if (const auto* is = find_column(facts_, wanted.name)) look_at(wanted, *is);
      else miss(wanted);
    }
    for (const auto& each : facts_.columns) {
      if (each.needs_value && !is_ours(each.name)) {
        add("extra_column", severity::wrong, "the column " + each.name + " of " + facts_.name + " wants a value that no entry has",
            cure_.allow_null(each));
      }
    }
  }

  void miss(const wanted_column& wanted) {
    whole_ = false;
    auto sql = cure_.add_column(wanted.name);
    const bool hopeless = sql.empty();
    add("column", severity::wrong, "the table " + facts_.name + " has no column " + std::string(wanted.name), std::move(sql),
        hopeless ? "it is another kind of table: choose another prefix" : "");
  }

  void look_at(const wanted_column& wanted, const column& is) {
    const std::string name = "the column " + is.name + " of " + facts_.name;
    if (!fits(wanted, is, server_, options_)) return misfit(wanted, is, name);
    if (wanted.moment && is.digits < 6) {
      return add(
          "time_digits", severity::wrong,
          name + " keeps only " + std::to_string(is.digits) + " digits of a second: two versions look like one, and none can be erased",
          cure_.change_column(is));
    }
    if (wanted.moment && is.type.starts_with("timestamp") && is_mysql(server_.dialect)) {
      add("time_range", severity::warning, name + " ends in January 2038; what expires later is refused", cure_.change_column(is));
    }
    if (wanted.identity && !is.exact) {
      return add("collation", severity::wrong,
                 name + (is.collation.empty() ? " (" + is.type + ")" : " (" + is.collation + ")") +
                     " takes different keys for the same: they would overwrite each other",
                 cure_.change_column(is));
    }
    if (!is.whole_unicode && !wanted.moment) {
      add("charset", severity::warning, name + " (" + is.collation + ") cannot keep every character; such entries are refused",
          cure_.change_column(is));
    }
    if (wanted.may_be_null && is.not_null) {
      add("not_null", severity::wrong, name + " must not be NULL, and so refuses tombstones", cure_.change_column(is));
    }
    if (wanted.most != 0 && is.length != 0 && is.length < static_cast<std::int64_t>(wanted.most)) {
      add("length", severity::warning,
          name + " holds " + std::to_string(is.length) + " characters, the published one " + std::to_string(wanted.most) +
              "; what is longer is refused",
          cure_.change_column(is));
    }
    if (wanted.name == "PAYLOAD" && is.length != 0 && is.length < roomy) {
      add("payload_size", is.length < smallest_published ? severity::warning : severity::note,
          name + " (" + is.type + ") refuses payloads above " + std::to_string(is.length) +
              (is.kind == kind::text && !is.type.ends_with("text") ? " characters" : " bytes"),
          cure_.change_column(is));
    }
  }

  void misfit(const wanted_column& wanted, const column& is, const std::string& name) {
    if (wanted.moment && is.kind == kind::local_moment) {
      return add("time_zone", severity::wrong,
                 name +
                     " has no time zone, so that nobody knows which moments it holds; the statement takes them for UTC "
                     "(store_options::zone says another)",
                 cure_.change_column(is));
    }
    if (wanted.name == "PAYLOAD" && (is.kind == kind::text || is.kind == kind::bytes)) {
      const bool bytes = options_.payload == payload_column::bytes;
      return add("payload_type", severity::wrong,
                 name + " is " + is.type + ", but the store is opened for " + (bytes ? "bytes" : "text") +
                     " (payload_column::" + (bytes ? "text" : "bytes") + " would fit it)",
                 cure_.change_column(is));
    }
    add("column_type", severity::wrong, name + " is " + is.type + ", which does not keep what it is given", cure_.change_column(is));
  }

  void look_at_indexes() {
    bool in_the_way = false;
    for (const auto& each : facts_.indexes) {
      const bool only_ours = std::all_of(each.columns.begin(), each.columns.end(),
                                         [](const std::string& c) { return is_ours(std::string_view(c).substr(0, c.find('('))); });
      if (!each.unique || !only_ours || holds_key(each)) continue;
      in_the_way = true;
      add("key_in_the_way", severity::wrong,
          "the key of " + facts_.name + " on (" + listed(each.columns) +
              ") lets entries replace or refuse each other; it must be on (FAILOVER_NAME, FAILOVER_KEY)",
          cure_.replace_key(each));
    }
    const bool keyed = std::any_of(facts_.indexes.begin(), facts_.indexes.end(),
                                   [](const index& each) { return each.unique && each.columns.size() == 2 && holds_key(each); });
    if (!keyed && !in_the_way) {
      add("primary_key", severity::wrong, "the table " + facts_.name + " has no primary key on (FAILOVER_NAME, FAILOVER_KEY)",
          cure_.add_key());
    }
    const bool indexed = std::any_of(facts_.indexes.begin(), facts_.indexes.end(),
                                     [](const index& each) { return !each.columns.empty() && each.columns.front() == "EXPIRE_ON"; });
    if (!indexed) {
      add("expire_index", severity::warning,
          "the table " + facts_.name + " has no index that begins with EXPIRE_ON: every cleanup reads the whole table",
          cure_.create_index());
    }
  }

  void look_at_storage() {
    if (is_mysql(server_.dialect) && facts_.storage != "InnoDB") {
      add("engine", severity::wrong,
          "the table " + facts_.name + " is kept by " + facts_.storage + ", which has no transactions and loses writes in a crash",
          cure_.change_storage());
    }
    if (facts_.storage == "unlogged") {
      add("unlogged", severity::warning, "the table " + facts_.name + " is unlogged: it is empty after a crash", cure_.change_storage());
    }
  }

  const table& facts_;
  const server& server_;
  const store_options& options_;
  cures cure_;
  bool whole_ = true;
  std::vector<probe_finding> found_{};
};

/// A setting that decides whether an acknowledged write is still there after a power failure.
struct durable_setting {
  dialect_id dialect;
  std::string_view name;
  std::string_view bad;  ///< the values that are, separated by spaces; with ! in front: all but these
  std::string_view meaning;
  std::string_view cure;      ///< SQL, statements separated by `; `
  std::string_view advice{};  ///< where SQL cannot
};
constexpr std::string_view loses_commits = "a power failure loses writes that were acknowledged";
constexpr std::string_view loses_all = "a power failure can destroy the database";
constexpr std::array durable_settings{
    durable_setting{dialect_id::postgresql, "fsync", "off", loses_all, "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()"},
    durable_setting{dialect_id::postgresql, "full_page_writes", "off", loses_all,
                    "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()"},
    durable_setting{dialect_id::postgresql, "synchronous_commit", "off", loses_commits,
                    "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf()"},
    durable_setting{dialect_id::mysql, "innodb_flush_log_at_trx_commit", "0 2", loses_commits,
                    "SET GLOBAL innodb_flush_log_at_trx_commit = 1", "write it under [mysqld] in the server's configuration, too"},
    durable_setting{dialect_id::mysql, "innodb_doublewrite", "0 OFF", loses_all, "",
                    "write innodb_doublewrite=ON under [mysqld] in the server's configuration, and restart the server"},
    durable_setting{dialect_id::sqlite, "synchronous", "0", loses_all, "", "remove synchronous=off from the URL"},
    durable_setting{dialect_id::sqlite, "synchronous", "1", loses_commits, "", "remove synchronous=normal from the URL"},
    durable_setting{dialect_id::sqlite, "journal_mode", "!wal", "readers and the writer wait for each other", "",
                    "keep the file on a local disk, and remove vfs= from the URL"},
    durable_setting{dialect_id::sqlite, "file_system", "tmpfs ramfs", "the file is in memory, and gone when the machine restarts", "",
                    "move it to a disk, and name its new place in the URL"},
    durable_setting{dialect_id::sqlite, "file_system", "nfs cifs smb ceph 9p fuse",
                    "the file is not on a disk of this machine, where locks and WAL cannot be relied on", "",
                    "move it to a local disk, and name its new place in the URL"},
};

bool is_one_of(std::string_view value, std::string_view words) {
  const bool all_but = words.starts_with('!');
  if (all_but) words.remove_prefix(1);
  bool found = false;
  while (!words.empty()) {
    const auto space = words.find(' ');
    found = found || words.substr(0, space) == value;
    words = space == std::string_view::npos ? std::string_view() : words.substr(space + 1);
  }
  return found != all_but;
}

std::vector<std::string> statements_in(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const auto end = text.find("; ");
    all.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
  }
  return all;
}

/// PostgreSQL says who set a value; whoever did must take it back, since others are overruled.
void taken_back(probe_finding& found, const setting& which, const server& of) {
  const std::string reset = " RESET " + which.name;
  if (which.source == "database") found.sql = {"ALTER DATABASE " + of.database + reset};
  else if (which.source == "user") found.sql = {"ALTER ROLE " + of.user + reset};
  else if (which.source == "database user") found.sql = {"ALTER ROLE " + of.user + " IN DATABASE " + of.database + reset};
  else if (which.source == "client") {
    found.sql.clear();
    found.advice = "remove it from the options in the URL";
  } else if (which.source == "command line") {
    found.sql.clear();
    found.advice = "remove -c " + which.name + " from the command line that starts the server";
  }
}

/// A switch of MySQL, which some write as a number.
bool is_on(const setting* which) { return which != nullptr && which->value != "0" && which->value != "OFF"; }

std::int64_t number_of(const setting* which) {
  std::int64_t number = 0;
  if (which != nullptr) std::from_chars(which->value.data(), which->value.data() + which->value.size(), number);
  return number;
}

}  // namespace

std::vector<probe_finding> judge_table(const table& facts, const server& of, const std::string& prefix, const store_options& options) {
  return table_judge(facts, of, prefix, options).findings();
}

std::vector<probe_finding> judge_transport(sql::transport_kind transport, dialect_id dialect) {
  using sql::transport_kind;
  const bool mysql = is_mysql(dialect);
  if (transport == transport_kind::plaintext) {
    std::string advice = mysql ? "set up TLS on the server, and write tls=1&tls_ca=FILE in the URL"
                               : "set up TLS on the server, and write sslmode=verify-full&sslrootcert=FILE in the URL";
    if (dialect == dialect_id::h2) advice = "H2's PostgreSQL port has no TLS: put a TLS tunnel or a private network between";
    return {{.code = "plaintext",
             .severity = severity::warning,
             .problem = "the connection to another machine is not encrypted: payloads and the login can be read and changed on the way",
             .advice = std::move(advice)}};
  }
  if (transport == transport_kind::encrypted) {
    return {{.code = "unverified",
             .severity = severity::note,
             .problem = "the connection is encrypted, but the server was not verified: a program in between could pose as the server",
             .advice = mysql ? "write tls=1&tls_ca=FILE in the URL, with the authority that signed the server's certificate"
                             : "write sslmode=verify-full&sslrootcert=FILE in the URL, with the authority that signed the server's "
                               "certificate"}};
  }
  return {};
}

std::vector<probe_finding> judge_server(const server& facts) {
  std::vector<probe_finding> found;
  const auto family = facts.dialect == dialect_id::mariadb ? dialect_id::mysql : facts.dialect;
  for (const auto& each : durable_settings) {
    const auto* is = facts.find(each.name);
    if (each.dialect != family || is == nullptr || !is_one_of(is->value, each.bad)) continue;
    found.push_back({.code = std::string(each.name),
                     .severity = severity::warning,
                     .problem = std::string(each.name) + " is " + is->value + ": " + std::string(each.meaning),
                     .sql = statements_in(each.cure),
                     .advice = std::string(each.advice)});
    if (facts.dialect == dialect_id::postgresql) taken_back(found.back(), *is, facts);
  }
  if (family == dialect_id::mysql) {
    if (is_on(facts.find("log_bin")) && number_of(facts.find("sync_binlog")) != 1) {
      found.push_back({.code = "sync_binlog",
                       .severity = severity::warning,
                       .problem = "sync_binlog is not 1: after a power failure replicas and server may differ",
                       .sql = {"SET GLOBAL sync_binlog = 1"},
                       .advice = "write it under [mysqld] in the server's configuration, too"});
    }
    constexpr std::int64_t enough = std::int64_t{8} << 20U;  // a batch, and what travels with it
    if (const auto* packet = facts.find("max_allowed_packet"); packet != nullptr && number_of(packet) < enough) {
      found.push_back({.code = "max_allowed_packet",
                       .severity = severity::warning,
                       .problem = "max_allowed_packet is " + packet->value + ": larger batches and payloads are refused",
                       .sql = {"SET GLOBAL max_allowed_packet = 16777216"},
                       .advice = "write it under [mysqld] in the server's configuration, too"});
    }
    if (is_on(facts.find("read_only"))) {
      found.push_back({.code = "read_only",
                       .severity = severity::failing,
                       .problem = "the server is read-only: nothing can be written",
                       .sql = {"SET GLOBAL read_only = OFF"},
                       .advice = "if it is a replica, connect to the primary instead"});
    }
  }
  if (const auto* encoding = facts.find("server_encoding"); encoding != nullptr && encoding->value != "UTF8") {
    found.push_back({.code = "charset",
                     .severity = severity::warning,
                     .problem = "the database is in " + encoding->value + " and cannot keep every character; such entries are refused",
                     .advice = "make a database in UTF8 and name it in the URL: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"});
  }
  if (const auto* standby = facts.find("standby"); standby != nullptr && standby->value == "on") {
    found.push_back({.code = "read_only",
                     .severity = severity::failing,
                     .problem = "the server is a standby: nothing can be written",
                     .advice = "name the primary in the URL, or all of them and target_session_attrs=read-write"});
  }
  if (const auto* only = facts.find("default_transaction_read_only"); only != nullptr && only->value == "on") {
    found.push_back({.code = "read_only",
                     .severity = severity::failing,
                     .problem = "default_transaction_read_only is on: nothing can be written",
                     .sql = {"ALTER SYSTEM SET default_transaction_read_only = off", "SELECT pg_reload_conf()"}});
    taken_back(found.back(), *only, facts);
  }
  return found;
}

std::vector<probe_finding> judge_skew(std::chrono::microseconds skew, std::chrono::microseconds within,
                                      std::chrono::microseconds max_skew) {
  using namespace std::chrono;
  // What is surely wrong, whatever the way of the question and of the answer took.
  const auto sure = abs(skew) - within;
  const bool beyond = sure > max_skew;
  if (!beyond && sure <= seconds(1)) return {};
  const auto tenths = duration_cast<milliseconds>(abs(skew)).count() / 100;
  const auto shown = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
  return {{.code = "clock_skew",
           .severity = beyond ? severity::failing : severity::warning,
           .problem = "the server's clock is " + shown + (skew.count() > 0 ? " ahead of ours" : " behind ours") +
                      (beyond ? ", more than max_skew: which entry is newer cannot be told" : ": which entry is newer is not certain"),
           .advice = "keep both machines on time: timedatectl set-ntp true"}};
}

}  // namespace HOLDFAST_NAMESPACE::probing
