#include "sequence/redis/scripts.hpp"

#include "sequence/redis/allocate_by_clock_lua.hpp"
#include "sequence/redis/allocate_from_super_block_lua.hpp"
#include "sequence/redis/allocate_lua.hpp"
#include "sequence/redis/counter_lua.hpp"
#include "sequence/redis/definition_lua.hpp"
#include "sequence/redis/forget_lua.hpp"
#include "sequence/redis/peek_lua.hpp"
#include "sequence/redis/raise_lua.hpp"
#include "sequence/redis/raise_super_block_lua.hpp"
#include "sequence/redis/redefine_lua.hpp"
#include "sequence/redis/replace_lua.hpp"
#include "sequence/redis/schema.hpp"

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sequence::redis {

namespace {

holdfast::redis::script counter_script(std::string_view body) {
  return holdfast::redis::script("local newest_schema = " + std::to_string(current_counter_schema) +
                                 "\n" + std::string(counter_lua).append(body));
}

}  // namespace

const counter_scripts& scripts() {
  static const counter_scripts all{
      .allocate = counter_script(allocate_lua),
      .allocate_from_super_block = counter_script(allocate_from_super_block_lua),
      .allocate_by_clock = counter_script(allocate_by_clock_lua),
      .peek = counter_script(peek_lua),
      .raise = counter_script(raise_lua),
      .raise_super_block = counter_script(raise_super_block_lua),
      .replace = counter_script(replace_lua),
      .forget = counter_script(forget_lua),
      .definition = counter_script(definition_lua),
      .redefine = counter_script(redefine_lua),
  };
  return all;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence::redis
