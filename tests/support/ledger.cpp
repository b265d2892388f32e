#include "support/ledger.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::test {
namespace {

constexpr std::uint64_t mark = 0x5245'434f'5244'0a1aU;  // "RECORD", and what no text has

struct frame {
  std::uint64_t begin = mark;
  std::uint64_t checksum = 0;
};

// FNV-1a: it only has to notice a torn record.
std::uint64_t checksum_of(std::string_view bytes) {
  std::uint64_t sum = 0xcbf2'9ce4'8422'2325U;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100'0000'01b3U;
  return sum;
}

}  // namespace

ledger_file::ledger_file(const std::filesystem::path& path, std::size_t record_size)
    : path_(path), size_(record_size) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) throw std::system_error(errno, std::generic_category(), path);
}

ledger_file::~ledger_file() { ::close(file_); }

void ledger_file::append(const void* record) {
  const std::string_view payload(static_cast<const char*>(record), size_);
  const frame head{.checksum = checksum_of(payload)};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes += payload;
  ssize_t written = 0;
  do written = ::write(file_, bytes.data(), bytes.size());
  while (written < 0 && errno == EINTR);
  if (written < 0) throw std::system_error(errno, std::generic_category(), path_);
  if (static_cast<std::size_t>(written) != bytes.size())
    throw std::runtime_error(path_.string() + ": no room for a record");
}

std::vector<std::string> ledger_file::read() const {
  std::ifstream in(path_, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> result;
  for (std::size_t at = 0; at + sizeof(frame) + size_ <= bytes.size();) {
    frame head;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    auto payload = bytes.substr(at + sizeof head, size_);
    if (head.begin == mark && head.checksum == checksum_of(payload)) {
      result.push_back(std::move(payload));
      at += sizeof head + size_;
    } else {
      ++at;  // the rest of a torn one: look for the next
    }
  }
  return result;
}

}  // namespace holdfast::test
