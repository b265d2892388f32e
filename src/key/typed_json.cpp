#include <holdfast/key/typed_json.hpp>

#include "key/typed_reader.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::key {

using namespace holdfast::detail::key;

struct typed_json_reader::state {
  typed_reader reader;
  simdjson::dom::parser parser{};
};

typed_json_reader::typed_json_reader(key::scheme scheme)
    : state_(new state{.reader = typed_reader(scheme)}) {}
typed_json_reader::typed_json_reader(typed_json_reader&&) noexcept = default;
typed_json_reader& typed_json_reader::operator=(typed_json_reader&&) noexcept = default;
typed_json_reader::~typed_json_reader() = default;

value typed_json_reader::read(std::string_view json) {
  const auto capacity = std::max<std::size_t>(json.size(), 256);
  if (const auto failed = state_->parser.allocate(capacity, max_json_depth))
    throw json_error(failed, "value");
  simdjson::dom::element root;
  if (const auto failed = state_->parser.parse(json.data(), json.size()).get(root))
    throw json_error(failed, "value");
  return state_->reader.read(root, "value");
}

}  // namespace HOLDFAST_NAMESPACE::key
