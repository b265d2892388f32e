#pragma once

/// \file
/// A disk that can lose power, for SQLite. kill -9 loses nothing that SQLite has written, for the
/// kernel keeps it: a database without any sync passes every such test. Here the writes since the
/// last sync of each file are lost, or survive in part.
///
///     unsynced_vfs disk("disk", {.seed = 1});
///     open with sqlite3_open_v2(path, &db, flags, "disk"), or the URI file:path?vfs=disk
///     ...
///     disk.crash();              // or disk.crash_after(17): in the 17th write, sync, truncation or deletion from now
///     sqlite3_close(db);         // every call on it fails, as it would in a process that is no more
///     open again: the files hold what a disk would hold
///
/// What is modelled: writes, truncations and deletions, of the database, its journal and its
/// write-ahead log. A sync makes one file's content survive, and its name if the file is new, with
/// every earlier change in the same directory (as ext4, XFS and Btrfs do). A deletion survives when
/// the directory is synced, or by luck; SQLite asks for that only with synchronous=EXTRA. SQLite
/// never renames. The write-ahead log's index (-shm) is shared memory: it is passed through, and
/// SQLite builds it anew after a crash.

#include "support/unsynced_content.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::test {

/// Registers itself with SQLite, under a name, for as long as it lives. Nothing may be open on it
/// when it is destroyed. It sees only what goes through it: one process, no other VFS on the same
/// files at the same time.
/// Thread-safety: every function may be called from any thread.
class unsynced_vfs {
 public:
  struct options {
    std::uint64_t seed = 1;                 ///< decides what survives
    power_loss loss = power_loss::partial;  ///< how bad it gets
    /// false: a disk that keeps its directories in order by itself
    bool deletions_may_be_lost = true;
    bool make_default = false;  ///< for code that cannot name a VFS
  };

  explicit unsynced_vfs(std::string name);
  unsynced_vfs(std::string name, const options& how);
  unsynced_vfs(const unsynced_vfs&) = delete;
  unsynced_vfs& operator=(const unsynced_vfs&) = delete;
  ~unsynced_vfs();

  [[nodiscard]] const std::string& name() const noexcept;

  /// The power fails now. Everything that is open fails from here on, and nothing can be opened
  /// until all of that is closed.
  void crash();
  /// It fails that many changes (writes, truncations, syncs, deletions) from now, in the middle of
  /// the last one; 0: never.
  void crash_after(std::uint64_t changes);
  /// Is there still something open from before the last crash?
  [[nodiscard]] bool off() const;

  [[nodiscard]] std::uint64_t crashes() const;
  /// Changes so far; syncs of files among them.
  [[nodiscard]] std::uint64_t changes() const;
  [[nodiscard]] std::uint64_t syncs() const;

 private:
  friend struct unsynced_vfs_calls;
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace holdfast::test
