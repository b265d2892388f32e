// Reads any bytes as chunked content, whole and in pieces. Content that is accepted gives the same
// when it is written again.
// links: holdfast::http

#include "http/body_reader.hpp"
#include "http/writer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace holdfast::detail::http;

void require(bool condition) {
  if (!condition) std::abort();
}

struct chunked_result {
  std::string content{};
  std::size_t consumed = 0;
  read_status status = read_status::incomplete;
  defect problem = defect::none;
  std::size_t trailers = 0;
};

chunked_result read_chunks(std::string_view text, std::size_t step) {
  chunked_result result;
  body_reader reader;
  reader.begin(framing::chunked, 0, {.line = 100, .field_count = 5, .head = 300, .body = 1'000});
  std::size_t offset = 0;
  while (offset < text.size() && result.status == read_status::incomplete) {
    const auto size = std::min(step, text.size() - offset);
    const auto piece = reader.read(text.substr(offset, size));
    require(piece.consumed <= size);
    require(piece.consumed > 0 || piece.status != read_status::incomplete);
    result.content += piece.content;
    offset += piece.consumed;
    result.status = piece.status;
  }
  result.problem = reader.problem();
  if (result.status == read_status::complete) {
    result.consumed = offset;
    result.trailers = reader.trailers().size();
  }
  require(result.content.size() == reader.size() && result.content.size() <= 1'000);
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto whole = read_chunks(text, size + 1);
  for (const std::size_t step : {1U, 3U}) {
    const auto pieces = read_chunks(text, step);
    require(pieces.content == whole.content && pieces.status == whole.status &&
            pieces.problem == whole.problem && pieces.consumed == whole.consumed &&
            pieces.trailers == whole.trailers);
  }
  if (whole.status != read_status::complete) return 0;
  std::string written;
  append_chunk(written, whole.content);
  append_last_chunk(written);
  require(read_chunks(written, 7).content == whole.content);
  return 0;
}
