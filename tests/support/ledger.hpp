#pragma once

/// \file
/// What was promised, written down where no kill can take it back.

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

namespace holdfast::test {

/// The file below a ledger: records of one size, appended by any number of processes at the same
/// time.
class ledger_file {
 public:
  ledger_file(const std::filesystem::path& path, std::size_t record_size);
  ledger_file(const ledger_file&) = delete;
  ledger_file& operator=(const ledger_file&) = delete;
  ~ledger_file();

  /// One write(2) with O_APPEND: when it returns the kernel has the record, and kill -9 of this
  /// process does not take it away.
  void append(const void* record);
  /// All whole records. A kill can tear one, which was not acknowledged then; it is left out,
  /// wherever it is, for each has a checksum.
  [[nodiscard]] std::vector<std::string> read() const;

 private:
  std::filesystem::path path_;
  std::size_t size_;
  int file_ = -1;
};

/// Records of what a worker was told had happened. A worker adds one *after* the operation under
/// test returned, so everything in here was acknowledged; afterwards the test asks the system under
/// test for all of it.
///
///     struct sold { std::int64_t id; std::int64_t worker; };
///     ledger<sold> book(path);              // in each worker, and in the test
///     auto id = ids.next();  book.add({id, me});
///
/// Thread-safety: every function may be called from any thread, and any process.
template <class Record>
class ledger {
  static_assert(std::is_trivially_copyable_v<Record>, "a record is written as its bytes");
  static_assert(std::is_default_constructible_v<Record>);

 public:
  explicit ledger(const std::filesystem::path& path) : file_(path, sizeof(Record)) {}

  void add(const Record& record) { file_.append(&record); }

  [[nodiscard]] std::vector<Record> read() const {
    std::vector<Record> result;
    for (const auto& bytes : file_.read())
      std::memcpy(&result.emplace_back(), bytes.data(), sizeof(Record));
    return result;
  }

 private:
  ledger_file file_;
};

}  // namespace holdfast::test
