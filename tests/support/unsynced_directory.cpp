#include "support/unsynced_directory.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace holdfast::test {

void unsynced_directories::directory::flush(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (pending[i].added) {
      durable[pending[i].path] = pending[i].added;
    } else {
      durable.erase(pending[i].path);
    }
  }
  pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(count));
}

unsynced_directories::file unsynced_directories::find(const std::string& path) {
  auto& here = directory_of(path);
  if (const auto known = here.seen.find(path); known != here.seen.end()) return known->second;
  if (!std::filesystem::exists(path)) return nullptr;
  std::ifstream in(path, std::ios::binary);
  auto found =
      std::make_shared<unsynced_content>(std::string(std::istreambuf_iterator<char>(in), {}));
  here.seen[path] = found;
  here.durable[path] = found;
  return found;
}

unsynced_directories::file unsynced_directories::create(const std::string& path) {
  auto& here = directory_of(path);
  auto made = std::make_shared<unsynced_content>();
  here.seen[path] = made;
  here.pending.push_back({.path = path, .added = made});
  return made;
}

void unsynced_directories::remove(const std::string& path) {
  if (!find(path)) return;
  auto& here = directory_of(path);
  here.seen[path] = nullptr;
  here.pending.push_back({.path = path, .added = nullptr});
}

void unsynced_directories::sync_file(const std::string& path, unsynced_content& content) {
  content.sync();
  auto& here = directory_of(path);
  const auto birth = std::find_if(here.pending.begin(), here.pending.end(),
                                  [&](const change& one) { return one.added.get() == &content; });
  if (birth != here.pending.end())
    here.flush(static_cast<std::size_t>(birth - here.pending.begin()) + 1);
}

void unsynced_directories::sync_directory_of(const std::string& path) {
  auto& here = directory_of(path);
  here.flush(here.pending.size());
}

void unsynced_directories::lose_power(power_loss loss, bool deletions_may_be_lost,
                                      std::mt19937_64& random) {
  for (auto& [name, here] : directories_) {
    const auto all = here.pending.size();
    here.flush(!deletions_may_be_lost ? all : loss == power_loss::drop ? 0 : random() % (all + 1));
    std::set<std::string> paths;
    for (const auto& [path, content] : here.seen) paths.insert(path);
    for (const auto& [path, content] : here.durable) paths.insert(path);
    for (const auto& path : paths) {
      const auto kept = here.durable.find(path);
      if (kept == here.durable.end()) {
        std::filesystem::remove(path);
        continue;
      }
      std::ofstream out(path, std::ios::binary | std::ios::trunc);
      out << kept->second->after(loss, random);
      if (!out.flush()) throw std::runtime_error("cannot write " + path);
    }
  }
  directories_.clear();
}

}  // namespace holdfast::test
