#include "support/unsynced_content.hpp"

#include <algorithm>
#include <map>

namespace holdfast::test {

std::size_t unsynced_content::change::size_after(std::size_t before) const {
  return truncation ? offset : std::max(before, offset + data.size());
}

// The part of the change that lies within `content`, which is the file from byte `first` on.
void unsynced_content::change::apply(std::string& content, std::size_t first) const {
  const auto end = first + content.size();
  if (truncation) {
    const auto from = std::clamp(offset, first, end);
    std::fill(content.begin() + static_cast<std::ptrdiff_t>(from - first), content.end(), '\0');
    return;
  }
  const auto from = std::clamp(offset, first, end);
  const auto to = std::clamp(offset + data.size(), first, end);
  if (from < to) content.replace(from - first, to - from, data, from - offset, to - from);
}

void unsynced_content::write(std::size_t offset, std::string_view data) {
  pending_.push_back({.truncation = false, .offset = offset, .data = std::string(data)});
}

void unsynced_content::truncate(std::size_t size) {
  pending_.push_back({.truncation = true, .offset = size});
}

void unsynced_content::sync() {
  for (const auto& one : pending_) {
    durable_.resize(one.size_after(durable_.size()), '\0');
    one.apply(durable_, 0);
  }
  pending_.clear();
}

std::string unsynced_content::after(power_loss loss, std::mt19937_64& random) const {
  if (loss == power_loss::drop || pending_.empty()) return durable_;
  // All of it, none of it, or a mixture: the two extremes are the ones that a mixture almost never
  // hits.
  switch (random() % 4) {
    case 0:
      return durable_;
    case 1: {
      auto complete = *this;
      complete.sync();
      return std::move(complete.durable_);
    }
    default:
      return mixed(random);
  }
}

std::string unsynced_content::mixed(std::mt19937_64& random) const {
  const auto moment = random() % (pending_.size() + 1);
  std::size_t size = durable_.size();
  for (std::size_t i = 0; i < moment; ++i) size = pending_[i].size_after(size);

  // Which changes touch a sector, in order. A truncation touches all from its place on.
  std::map<std::size_t, std::vector<const change*>> of_sector;
  for (std::size_t number = 0; number * sector < size; ++number) of_sector[number];
  for (const auto& one : pending_) {
    const auto first = of_sector.lower_bound(one.offset / sector);
    const auto last =
        one.truncation
            ? of_sector.end()
            : of_sector.lower_bound((one.offset + one.data.size() + sector - 1) / sector);
    for (auto place = first; place != last; ++place) place->second.push_back(&one);
  }

  std::string result = durable_;
  result.resize(size, '\0');
  for (const auto& [number, changes] : of_sector) {
    if (changes.empty()) continue;
    const auto first = number * sector;
    auto piece = result.substr(first, sector);
    const auto version = random() % (changes.size() + 1);
    for (std::size_t i = 0; i < version; ++i) changes[i]->apply(piece, first);
    result.replace(first, piece.size(), piece);
  }
  return result;
}

}  // namespace holdfast::test
