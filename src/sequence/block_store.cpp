#include <holdfast/error.hpp>
#include <holdfast/sequence/block_store.hpp>

#include <algorithm>
#include <string>

namespace HOLDFAST_NAMESPACE {

namespace {

/// Does not depend on the locale: a name is valid everywhere or nowhere.
bool allowed_in_sequence_name(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == ':' || c == '/' || c == '-';
}

}  // namespace

block_store::~block_store() = default;

std::string block_store::failure_domain(std::string_view /*name*/) const noexcept { return {}; }

block_grant block_store::allocate_in(join::transaction& /*transaction*/,
                                     const block_request& /*request*/) {
  throw error(errc::invalid_argument,
              "this store cannot take part in a transaction; use a sequence on SQLite, PostgreSQL "
              "or MySQL");
}

std::optional<std::string> block_store::definition(std::string_view /*name*/) {
  return std::nullopt;
}

std::string block_store::complete_definition(std::string_view definition) const {
  return std::string(definition);
}

bool block_store::redefine(std::string_view /*name*/, std::string_view /*definition*/,
                           std::int64_t /*ordinal*/, counter_state /*expected*/,
                           std::string_view /*expected_definition*/) {
  throw error(errc::unsupported_type, "this store keeps no definitions of sequences");
}

std::vector<std::string> block_store::missing_objects() { return {}; }

void check_sequence_name(std::string_view name) {
  constexpr std::size_t max_length = 128;
  if (name.empty() || name.size() > max_length ||
      !std::ranges::all_of(name, allowed_in_sequence_name))
    throw error(errc::invalid_argument,
                "the name of a sequence is 1 to 128 of the characters A-Z a-z 0-9 _ . : / -");
}

void check_block_request(const block_request& request) {
  check_sequence_name(request.name);
  if (request.count < 1 || request.count > largest_block)
    throw error(errc::invalid_argument,
                "a block has 1 to 2147483648 numbers, not " + std::to_string(request.count));
  if (request.limit < 1)
    throw error(errc::invalid_argument,
                "the limit of a sequence must be at least 1, not " + std::to_string(request.limit));
}

}  // namespace HOLDFAST_NAMESPACE
