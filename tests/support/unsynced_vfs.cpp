#include "support/unsynced_vfs.hpp"

#include "support/unsynced_directory.hpp"

#include <sqlite3.h>

#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace holdfast::test {

struct unsynced_vfs::state {
  std::string name{};
  options how{};
  sqlite3_vfs* real = nullptr;
  sqlite3_vfs own{};

  mutable std::mutex mutex{};  // guards what follows, and is held while a file changes
  unsynced_directories disk{};
  std::mt19937_64 random{};
  std::uint64_t generation = 0;  // grows with each crash; a handle of an older one is dead
  std::uint64_t open = 0;        // handles of this generation
  std::uint64_t dead = 0;        // handles of older ones
  std::uint64_t until_crash = 0;
  std::uint64_t changes = 0;
  std::uint64_t syncs = 0;

  void crash() {
    dead += std::exchange(open, 0);
    ++generation;
    until_crash = 0;
    disk.lose_power(how.loss, how.deletions_may_be_lost, random);
  }

  // Counts a change. True: it is the one during which the power fails.
  bool last_change() {
    ++changes;
    return until_crash != 0 && --until_crash == 0;
  }
};

// What SQLite calls. A handle is ours, followed by the real VFS's own.
struct unsynced_vfs_calls {
  using state = unsynced_vfs::state;

  struct handle {
    sqlite3_file base;
    state* owner;
    std::uint64_t generation;
    // nullptr: a temporary file, which nobody misses after a crash
    std::string* path;
    unsynced_directories::file* content;  // nullptr likewise
  };

  static constexpr std::size_t real_offset = (sizeof(handle) + alignof(std::max_align_t) - 1) /
                                             alignof(std::max_align_t) * alignof(std::max_align_t);

  static handle& of(sqlite3_file* file) { return *reinterpret_cast<handle*>(file); }
  static sqlite3_file* real(sqlite3_file* file) {
    return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + real_offset);
  }
  static state& of(sqlite3_vfs* vfs) { return *static_cast<state*>(vfs->pAppData); }

  static bool dead(const handle& file) { return file.generation != file.owner->generation; }

  // ---- files

  static int close(sqlite3_file* file) {
    auto& self = of(file);
    const std::lock_guard lock(self.owner->mutex);
    auto& count = dead(self) ? self.owner->dead : self.owner->open;
    --count;
    const int result = real(file)->pMethods->xClose(real(file));
    delete self.path;
    delete self.content;
    return result;
  }

  static int read(sqlite3_file* file, void* data, int count, sqlite3_int64 offset) {
    auto& self = of(file);
    const std::lock_guard lock(self.owner->mutex);
    if (dead(self)) return SQLITE_IOERR_READ;
    return real(file)->pMethods->xRead(real(file), data, count, offset);
  }

  static int write(sqlite3_file* file, const void* data, int count, sqlite3_int64 offset) {
    auto& self = of(file);
    const std::lock_guard lock(self.owner->mutex);
    if (dead(self)) return SQLITE_IOERR_WRITE;
    if (self.content != nullptr) {
      (*self.content)
          ->write(static_cast<std::size_t>(offset),
                  {static_cast<const char*>(data), static_cast<std::size_t>(count)});
      if (self.owner->last_change()) {
        self.owner->crash();
        return SQLITE_IOERR_WRITE;
      }
    }
    return real(file)->pMethods->xWrite(real(file), data, count, offset);
  }

  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    auto& self = of(file);
    const std::lock_guard lock(self.owner->mutex);
    if (dead(self)) return SQLITE_IOERR_TRUNCATE;
    if (self.content != nullptr) {
      (*self.content)->truncate(static_cast<std::size_t>(size));
      if (self.owner->last_change()) {
        self.owner->crash();
        return SQLITE_IOERR_TRUNCATE;
      }
    }
    return real(file)->pMethods->xTruncate(real(file), size);
  }

  // The real disk is not asked: nothing here depends on it, and it would only cost time.
  static int sync(sqlite3_file* file, int) {
    auto& self = of(file);
    const std::lock_guard lock(self.owner->mutex);
    if (dead(self)) return SQLITE_IOERR_FSYNC;
    if (self.content == nullptr) return SQLITE_OK;
    if (self.owner->last_change()) {
      self.owner->crash();
      return SQLITE_IOERR_FSYNC;
    }
    ++self.owner->syncs;
    self.owner->disk.sync_file(*self.path, **self.content);
    return SQLITE_OK;
  }

  static int file_size(sqlite3_file* file, sqlite3_int64* size) {
    auto& self = of(file);
    const std::lock_guard lock(self.owner->mutex);
    if (dead(self)) return SQLITE_IOERR_FSTAT;
    return real(file)->pMethods->xFileSize(real(file), size);
  }

  static int lock(sqlite3_file* file, int level) {
    auto& self = of(file);
    const std::lock_guard guard(self.owner->mutex);
    if (dead(self)) return SQLITE_IOERR_LOCK;
    return real(file)->pMethods->xLock(real(file), level);
  }

  // Also on a dead handle: a process that is no more holds no locks.
  static int unlock(sqlite3_file* file, int level) {
    return real(file)->pMethods->xUnlock(real(file), level);
  }

  static int check_reserved_lock(sqlite3_file* file, int* result) {
    auto& self = of(file);
    const std::lock_guard guard(self.owner->mutex);
    if (dead(self)) return SQLITE_IOERR_CHECKRESERVEDLOCK;
    return real(file)->pMethods->xCheckReservedLock(real(file), result);
  }

  static int file_control(sqlite3_file* file, int operation, void* argument) {
    // These would change the file's size behind our back. They are hints; ignoring them is allowed.
    if (operation == SQLITE_FCNTL_SIZE_HINT || operation == SQLITE_FCNTL_CHUNK_SIZE)
      return SQLITE_OK;
    return real(file)->pMethods->xFileControl(real(file), operation, argument);
  }

  static int sector_size(sqlite3_file* file) {
    return real(file)->pMethods->xSectorSize(real(file));
  }

  // No promise that this disk does not keep: a write may be torn between sectors, but it never
  // harms its neighbours.
  static int device_characteristics(sqlite3_file* file) {
    return real(file)->pMethods->xDeviceCharacteristics(real(file)) &
           SQLITE_IOCAP_POWERSAFE_OVERWRITE;
  }

  // ---- the index of the write-ahead log: memory

  static int shm_map(sqlite3_file* file, int page, int size, int extend, volatile void** where) {
    auto& self = of(file);
    const std::lock_guard guard(self.owner->mutex);
    if (dead(self)) return SQLITE_IOERR_SHMMAP;
    return real(file)->pMethods->xShmMap(real(file), page, size, extend, where);
  }
  static int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
    auto& self = of(file);
    const std::lock_guard guard(self.owner->mutex);
    if (dead(self) && (flags & SQLITE_SHM_LOCK) != 0) return SQLITE_IOERR_SHMLOCK;
    return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
  }
  static void shm_barrier(sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); }
  static int shm_unmap(sqlite3_file* file, int remove) {
    return real(file)->pMethods->xShmUnmap(real(file), remove);
  }

  // Version 2: no memory-mapped files, which would be read past us.
  static constexpr sqlite3_io_methods methods{.iVersion = 2,
                                              .xClose = close,
                                              .xRead = read,
                                              .xWrite = write,
                                              .xTruncate = truncate,
                                              .xSync = sync,
                                              .xFileSize = file_size,
                                              .xLock = lock,
                                              .xUnlock = unlock,
                                              .xCheckReservedLock = check_reserved_lock,
                                              .xFileControl = file_control,
                                              .xSectorSize = sector_size,
                                              .xDeviceCharacteristics = device_characteristics,
                                              .xShmMap = shm_map,
                                              .xShmLock = shm_lock,
                                              .xShmBarrier = shm_barrier,
                                              .xShmUnmap = shm_unmap,
                                              .xFetch = nullptr,
                                              .xUnfetch = nullptr};

  // ---- names

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags,
                  int* out_flags) {
    auto& owner = of(vfs);
    auto& self = of(file);
    self.base.pMethods = nullptr;  // SQLite closes a file that failed to open only when this is set
    const std::lock_guard lock(owner.mutex);
    if (owner.dead != 0) return SQLITE_CANTOPEN;
    const bool lasting = path != nullptr && (flags & SQLITE_OPEN_DELETEONCLOSE) == 0;
    // Before the real one makes it.
    auto content = lasting ? owner.disk.find(path) : nullptr;
    const int result = owner.real->xOpen(owner.real, path, real(file), flags, out_flags);
    if (result != SQLITE_OK) {
      if (real(file)->pMethods != nullptr) real(file)->pMethods->xClose(real(file));
      return result;
    }
    if (lasting && !content) content = owner.disk.create(path);
    self.owner = &owner;
    self.generation = owner.generation;
    self.path = lasting ? new std::string(path) : nullptr;
    self.content = lasting ? new unsynced_directories::file(std::move(content)) : nullptr;
    self.base.pMethods = &methods;
    ++owner.open;
    return SQLITE_OK;
  }

  static int remove(sqlite3_vfs* vfs, const char* path, int sync_directory) {
    auto& owner = of(vfs);
    const std::lock_guard lock(owner.mutex);
    if (owner.dead != 0) return SQLITE_IOERR_DELETE;
    owner.disk.remove(path);
    if (owner.last_change()) {
      owner.crash();
      return SQLITE_IOERR_DELETE;
    }
    const int result = owner.real->xDelete(owner.real, path, 0);
    if (result == SQLITE_OK && sync_directory != 0) owner.disk.sync_directory_of(path);
    return result;
  }

  static int access(sqlite3_vfs* vfs, const char* path, int flags, int* result) {
    auto& owner = of(vfs);
    const std::lock_guard lock(owner.mutex);
    if (owner.dead != 0) return SQLITE_IOERR_ACCESS;
    return owner.real->xAccess(owner.real, path, flags, result);
  }

  static int full_pathname(sqlite3_vfs* vfs, const char* path, int size, char* out) {
    return of(vfs).real->xFullPathname(of(vfs).real, path, size, out);
  }
};

unsynced_vfs::unsynced_vfs(std::string name) : unsynced_vfs(std::move(name), options{}) {}

unsynced_vfs::unsynced_vfs(std::string name, const options& how)
    : state_(std::make_unique<state>()) {
  state_->name = std::move(name);
  state_->how = how;
  state_->random.seed(how.seed);
  state_->real = sqlite3_vfs_find("unix");
  if (state_->real == nullptr) throw std::runtime_error("SQLite has no VFS named unix");
  // Time, randomness and sleep as the real one has them; what touches files is ours.
  state_->own = *state_->real;
  state_->own.pNext = nullptr;
  state_->own.zName = state_->name.c_str();
  state_->own.pAppData = state_.get();
  state_->own.szOsFile = static_cast<int>(unsynced_vfs_calls::real_offset) + state_->real->szOsFile;
  state_->own.xOpen = unsynced_vfs_calls::open;
  state_->own.xDelete = unsynced_vfs_calls::remove;
  state_->own.xAccess = unsynced_vfs_calls::access;
  state_->own.xFullPathname = unsynced_vfs_calls::full_pathname;
  if (sqlite3_vfs_register(&state_->own, how.make_default ? 1 : 0) != SQLITE_OK)
    throw std::runtime_error("SQLite refused the VFS " + state_->name);
}

unsynced_vfs::~unsynced_vfs() { sqlite3_vfs_unregister(&state_->own); }

const std::string& unsynced_vfs::name() const noexcept { return state_->name; }

void unsynced_vfs::crash() {
  const std::lock_guard lock(state_->mutex);
  state_->crash();
}

void unsynced_vfs::crash_after(std::uint64_t changes) {
  const std::lock_guard lock(state_->mutex);
  state_->until_crash = changes;
}

bool unsynced_vfs::off() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dead != 0;
}

std::uint64_t unsynced_vfs::crashes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->generation;
}

std::uint64_t unsynced_vfs::changes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->changes;
}

std::uint64_t unsynced_vfs::syncs() const {
  const std::lock_guard lock(state_->mutex);
  return state_->syncs;
}

}  // namespace holdfast::test
